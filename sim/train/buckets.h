#pragma once

// Which tensors travel together: DDP's assignment of gradients to buckets, and the broadcast of many tensors
// as few (torch/csrc/distributed/c10d/reducer.cpp and comm.cpp).

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

// Per bucket, the tensors in it, by index.
using BucketIndices = std::vector<std::vector<std::uint32_t>>;

// Fills buckets of one dtype and device with `tensors` in the given order; a bucket closes once it has reached its
// limit in bytes. `limits` are those of the first, second, ... bucket of a dtype; the last one applies to all further
// buckets. The result is ordered by the first index of each bucket, unless `indices` gives each tensor's index: then
// full buckets come in the order in which they filled up, followed by the incomplete ones, starting with the dtype seen
// last.
BucketIndices assign_buckets(std::span<const Tensor> tensors, std::span<const std::int64_t> limits,
                             std::span<const std::uint32_t> indices = {});

// Overwrites all ranks' `tensors` with those of `root`, a rank of the group (after a mismatched call it can be any
// number, which the backend refuses), in flat broadcasts of at most `chunk_bytes`, per dtype in order of first
// appearance. Two are in flight at a time. Blocks.
void broadcast_coalesced(const TensorList& tensors, Rank root, std::int64_t chunk_bytes,
                         const ProcessGroup& group, Site site);

}  // namespace rollcall
