#pragma once

// The exceptions that a rank program throws where PyTorch would raise. The type name is Python's and the text is
// PyTorch's, so that a user finds both in the real traceback.

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/site.h"

namespace rollcall {

class Error : public std::runtime_error {
 public:
  Error(const char* type, const std::string& message) : std::runtime_error(message), type_(type) {}

  // Python's exception type: "RuntimeError", "ValueError", ... A literal.
  const char* type() const { return type_; }
  // Where it was raised; unknown unless set.
  Site site() const { return site_; }
  void set_site(Site site) { site_ = site; }

 private:
  const char* type_;
  Site site_{};
};

struct RuntimeError : Error {
  explicit RuntimeError(const std::string& message) : Error("RuntimeError", message) {}
  // Of a class that is derived from it in Python, such as torch's DistError.
  RuntimeError(const char* type, const std::string& message) : Error(type, message) {}
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

// Thrown by a rank program, or by a simulated backend where the real one aborts: its process dies by this signal, a
// literal such as "SIGKILL". Not a std::exception, so that a program's own catch clauses let it through.
struct ProcessKilled {
  const char* signal;
  std::string text{};  // what the process prints before it dies; may be empty
};

// Python's `raise`: throws `error` as the class that its type names, so that a handler for RuntimeError gets it. If it
// ends a rank, the report shows `site`.
[[noreturn]] inline void raise(const Error& error, Site site = Site::here()) {
  const auto throw_as = [&](auto same) {
    same.set_site(site);
    throw same;
  };
  const std::string_view type = error.type();
  if (type == "RuntimeError") {
    throw_as(RuntimeError(error.what()));
  }
  if (type == "ValueError") {
    throw_as(ValueError(error.what()));
  }
  if (type == "TypeError") {
    throw_as(TypeError(error.what()));
  }
  if (type == "AssertionError") {
    throw_as(AssertionError(error.what()));
  }
  if (type == "NotImplementedError") {
    throw_as(NotImplementedError(error.what()));
  }
  Error same = error;
  same.set_site(site);
  throw same;
}

}  // namespace rollcall
