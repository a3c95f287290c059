#pragma once

// Measures how long calls take on this machine's GPUs: a thread per GPU, calls back to back, like nccl-tests. For times
// only. Programs that can hang or fail run as processes instead (real/launch).

#include <cstdint>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::real {

struct ThroughputOptions {
  OpKind op = OpKind::all_reduce;
  Dtype dtype = Dtype::float32;
  ReduceOp reduce = ReduceOp::sum;
  int gpus = 2;                     // the first of the machine's
  std::vector<std::int64_t> bytes;  // as nccl-tests counts: of the whole gathered or scattered tensor
  bool takes_stand_in = false;      // for tests: its times mean nothing
};

// True if measure_throughput can measure it.
bool is_measured(OpKind op);

// Microseconds per call on the slowest GPU, by size. Throws Unavailable (real/rank/backend_entry.h) if there is no
// driver, if there are fewer GPUs, and if NCCL fails; std::invalid_argument for operations that cannot be measured.
std::vector<double> measure_throughput(const ThroughputOptions& options);

}  // namespace rollcall::real
