#pragma once

#include <cstdlib>

namespace rollcall::test {

// Makes rollcall look for CUDA and NCCL where the stand-in is.
class UseStandIn {
 public:
  UseStandIn() { ::setenv("ROLLCALL_GPU_LIBRARIES", ROLLCALL_STAND_IN, 1); }
  ~UseStandIn() { ::unsetenv("ROLLCALL_GPU_LIBRARIES"); }
  UseStandIn(const UseStandIn&) = delete;
  UseStandIn& operator=(const UseStandIn&) = delete;
};

}  // namespace rollcall::test
