#pragma once

// RingAttention: the cost of attention under context_parallel, where every rank has a part of the sequence and the keys
// and values of all parts pass by (torch/distributed/tensor/experimental/_context_parallel/_attention.py). The
// attention itself computes nothing.

#include <cstdint>
#include <functional>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/dtensor/functional.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

// set_rotate_method.
enum class RotateMethod : std::uint8_t {
  allgather,  // all keys and values in one call, before the second step
  alltoall,   // from neighbor to neighbor, step by step
};

struct RingOptions {
  ProcessGroup group{};   // of the mesh's dimension
  Shape key{1, 1, 1, 1};  // of a rank's keys, and of its values: batch, heads, sequence, width
  Dtype dtype = Dtype::float32;
  RotateMethod rotate_method = RotateMethod::allgather;  // torch's default
  // Each rank has an early and a late part of the sequence, so that all have the same work. Without it a rank skips the
  // parts after its own. Has no effect on the calls.
  bool is_load_balanced = true;
  bool is_causal = true;
  bool convert_to_f32 = true;  // gradients of keys and values travel as float32
};

class RingAttention {
 public:
  // Throws RuntimeError for load balancing without a causal mask.
  explicit RingAttention(RingOptions options);

  // attend: the attention with one part of the keys and values, while the next part is in flight. The first is the
  // rank's own. Not called for parts that the rank skips.
  using Attend = std::function<void(Rank step)>;
  void forward(const Attend& attend = {}, Site site = Site::here());
  // The keys and values pass by again, and their gradients follow them all the way around.
  void backward(const Attend& attend = {}, Site site = Site::here());

 private:
  class Rotater;

  bool skips(Rank step) const;
  void pass_around(const Attend& attend, Rotater* gradients, Site site) const;

  RingOptions options_;
};

}  // namespace rollcall
