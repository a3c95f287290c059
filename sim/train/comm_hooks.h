#pragma once

// DDP communication hooks: what a program may use in place of DDP's all_reduce of a bucket
// (torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py).

#include <cstddef>
#include <functional>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/work.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

// The gradients of one bucket, end to end. Not divided: a hook does that itself, and thereby decides whether
// divide_by_initial_world_size has any effect.
struct GradBucket {
  std::size_t index = 0;  // in the order of reduction
  Tensor buffer;
  Site site{};  // of the backward that filled it; unknown for a rank that has joined
};

// The reduced gradients, once `work` is done and `then` (if any) has run.
struct BucketFuture {
  Work work;
  Tensor result;
  std::function<void()> then{};
};

using CommHook = std::function<BucketFuture(const GradBucket&, const ProcessGroup&)>;

// Divides by the group's size, then all-reduces: DDP's own behavior, as a hook.
BucketFuture allreduce_hook(const GradBucket& bucket, const ProcessGroup& group);
// The same in half precision: half the bytes, and half the digits.
BucketFuture fp16_compress_hook(const GradBucket& bucket, const ProcessGroup& group);
BucketFuture bf16_compress_hook(const GradBucket& bucket, const ProcessGroup& group);

}  // namespace rollcall
