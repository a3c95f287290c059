#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace rollcall::real {

// A shared library that is opened when it is needed. It stays open: some libraries, such as CUDA's, cannot
// be closed safely. Whatever it does when it is opened, signals keep the handlers that they have.
class SharedLibrary {
 public:
  // The first of `names` that can be opened. Throws std::runtime_error, with the loader's reason.
  explicit SharedLibrary(const std::vector<std::string>& names);

  const std::string& name() const { return name_; }

  bool has(const char* symbol) const;

  // The address of a function, whatever its type is.
  struct Symbol {
    void* address;

    template <typename Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  // Throws std::runtime_error naming a symbol that the library lacks.
  Symbol find(const char* symbol) const;

 private:
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace rollcall::real
