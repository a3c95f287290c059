#include "real/process/shared_library.h"

#include <array>
#include <csignal>

#include <dlfcn.h>
#include <pthread.h>

namespace rollcall::real {

namespace {

// Gives signals the handlers back that they had when the object was made, and holds back those that come until then.
// UCX, which the Gloo of Debian 13 brings along, takes SIGHUP and the signals of faults when it is opened.
class KeptHandlers {
 public:
  KeptHandlers() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &mask_);
    for (int signal = 1; signal < NSIG; ++signal) {
      Handler& handler = handlers_[static_cast<std::size_t>(signal)];
      handler.is_known = ::sigaction(signal, nullptr, &handler.action) == 0;
    }
  }
  ~KeptHandlers() {
    for (int signal = 1; signal < NSIG; ++signal) {
      const Handler& handler = handlers_[static_cast<std::size_t>(signal)];
      if (handler.is_known) {  // those of SIGKILL and SIGSTOP are known, and never change
        ::sigaction(signal, &handler.action, nullptr);
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;

 private:
  struct Handler {
    struct sigaction action = {};
    bool is_known = false;  // the C library hides those that it uses itself
  };

  std::array<Handler, NSIG> handlers_;
  sigset_t mask_ = {};
};

}  // namespace

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  const KeptHandlers kept;
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
