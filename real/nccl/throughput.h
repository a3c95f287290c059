#pragma once

// How long calls take on this machine's GPUs: a thread per GPU, calls back to back, as nccl-tests measures. For times
// only. Whatever can hang or fail runs as processes instead (real/launch).

#include <cstdint>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::real {

struct ThroughputOptions {
  OpKind op = OpKind::all_reduce;
  Dtype dtype = Dtype::float32;
  ReduceOp reduce = ReduceOp::sum;
  int gpus = 2;                     // the first of the machine's
  std::vector<std::int64_t> bytes;  // as nccl-tests counts: of gathered and scattered tensors the whole
  bool takes_stand_in = false;      // for tests: its times mean nothing
};

// Whether measure_throughput knows how to call it.
bool is_measured(OpKind op);

// Microseconds per call, by size, of the slowest GPU. Throws Unavailable (real/rank/backend_entry.h) without a
// driver, where there are fewer GPUs, and when NCCL fails; std::invalid_argument for operations that are not measured.
std::vector<double> measure_throughput(const ThroughputOptions& options);

}  // namespace rollcall::real
