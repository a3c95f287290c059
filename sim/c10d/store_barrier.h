#pragma once

// The barrier in the store in which every call that makes a process group ends (torch/distributed/
// distributed_c10d.py, _store_based_barrier).

#include <cstdint>
#include <string>

#include "sim/c10d/op.h"

namespace rollcall {

// The error of a rank that has waited there for `timeout`. `number`: of the new_group, from 0; the world's own barrier
// came first. `worker_count`: the number of ranks that have arrived, of `world_size`.
std::string store_barrier_timeout_text(Rank rank, std::int64_t number, Rank world_size, Rank worker_count,
                                       Duration timeout);

}  // namespace rollcall
