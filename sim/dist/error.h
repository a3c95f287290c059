#pragma once

// What a rank program throws where PyTorch would raise. The type name is Python's, the text is
// PyTorch's, so that a user finds both in the real traceback.

#include <stdexcept>
#include <string>
#include <utility>

namespace rollcall {

class Error : public std::runtime_error {
 public:
  Error(const char* type, const std::string& message) : std::runtime_error(message), type_(type) {}

  // Python's exception type: "RuntimeError", "ValueError", ... A literal.
  const char* type() const { return type_; }

 private:
  const char* type_;
};

struct RuntimeError : Error {
  explicit RuntimeError(const std::string& message) : Error("RuntimeError", message) {}
};
struct ValueError : Error {
  explicit ValueError(const std::string& message) : Error("ValueError", message) {}
};
struct TypeError : Error {
  explicit TypeError(const std::string& message) : Error("TypeError", message) {}
};
struct AssertionError : Error {
  explicit AssertionError(const std::string& message) : Error("AssertionError", message) {}
};
struct NotImplementedError : Error {
  explicit NotImplementedError(const std::string& message) : Error("NotImplementedError", message) {}
};

}  // namespace rollcall
