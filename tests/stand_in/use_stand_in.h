#pragma once

#include <cstdlib>

namespace rollcall::test {

// Makes rollcall load CUDA and NCCL from the stand-in's folder.
class UseStandIn {
 public:
  UseStandIn() { ::setenv("ROLLCALL_GPU_LIBRARIES", ROLLCALL_STAND_IN, 1); }
  ~UseStandIn() { ::unsetenv("ROLLCALL_GPU_LIBRARIES"); }
  UseStandIn(const UseStandIn&) = delete;
  UseStandIn& operator=(const UseStandIn&) = delete;
};

}  // namespace rollcall::test
