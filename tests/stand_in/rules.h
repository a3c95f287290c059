#pragma once

// The contracts of CUDA and NCCL that a caller can break. A process that breaks one is ended with a message.

#include <string>

namespace rollcall::stand_in {

// Writes "stand-in: " and the rule to standard error, and aborts.
[[noreturn]] void break_off(const std::string& rule);

inline void require(bool holds, const char* rule) {
  if (!holds) {
    break_off(rule);
  }
}

// Every call into CUDA or NCCL calls this first. A forked process has lost its GPU, and a host function must not call
// back.
void enter();

// Lives while a host function runs on a stream.
struct HostFunction {
  HostFunction();
  ~HostFunction();
};

}  // namespace rollcall::stand_in
