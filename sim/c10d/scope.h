#pragma once

// Scope: names the part of a program that issues collectives, like torch's record_function. A report
// then says "all_reduce in DDP.backward" instead of a line inside our own DDP.

#include <string_view>

#include "sim/base/scope_id.h"

namespace rollcall {

// Enters a scope of the current rank for the lifetime of the object. `name` is copied when new.
class Scope {
 public:
  explicit Scope(std::string_view name);
  Scope(std::string_view name, std::string_view pairing);  // strict
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  ScopeId outer_;
};

}  // namespace rollcall
