#include "real/process/shared_library.h"

#include <dlfcn.h>

namespace rollcall::real {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  std::string reason;
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
    reason = reason.empty() ? ::dlerror() : reason;  // the loader's usual places come first
  }
  throw std::runtime_error(reason);
}

bool SharedLibrary::has(const char* symbol) const { return ::dlsym(handle_, symbol) != nullptr; }

SharedLibrary::Symbol SharedLibrary::find(const char* symbol) const {
  void* address = ::dlsym(handle_, symbol);
  if (address == nullptr) {
    throw std::runtime_error(name_ + " has no " + symbol);
  }
  return {address};
}

}  // namespace rollcall::real
