#pragma once

// The contracts of CUDA and NCCL that a caller can break. Whoever breaks one is told which and ends.

#include <string>

namespace rollcall::stand_in {

// Writes "stand-in: " and the rule to standard error, and aborts.
[[noreturn]] void break_off(const std::string& rule);

inline void require(bool holds, const char* rule) {
  if (!holds) {
    break_off(rule);
  }
}

// What every call into CUDA or NCCL does first. A process that has forked has lost its GPU; a host function must not
// call back.
void enter();

// For the time in which a host function runs on a stream.
struct HostFunction {
  HostFunction();
  ~HostFunction();
};

}  // namespace rollcall::stand_in
