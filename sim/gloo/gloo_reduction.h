#pragma once

// Gloo's order of additions, for reductions whose calls agree. The ring (gloo_ring.cc) adds up each chunk
// of the tensor beginning at another rank, so that one tensor's elements may be rounded differently; and a
// reduce leaves partial sums on the ranks it is not for. This is the ring's result without its messages.

#include <span>

#include "sim/c10d/op.h"

namespace rollcall::sim::gloo {

// True when the elements of one position may sum up to other bits in another order. Integers, equal values
// and small whole numbers do not; the answer may be "true" for some others that do not either. Cheap: it is
// asked for every reduction.
bool order_matters(ReduceOp reduce, Dtype dtype, std::span<const Bits> values);

// An all_reduce or reduce. `tensors` by group rank, at least two; `values`: everyone's contribution where
// all tensors are uniform, empty otherwise.
void reduce_by_ring(const Op& op, std::span<const Bits> values, std::span<Storage* const> tensors);

// A reduce_scatter, as torch makes it of those: with lists a reduce to each rank in turn, of flat tensors an
// all_reduce of which each rank keeps its part (ProcessGroupGloo.cpp, reduce_scatter_tensor_coalesced; the first as the
// results of PyTorch 2.14 show). `calls` by group rank.
void reduce_and_scatter(const Op& op, std::span<const Op> calls);

}  // namespace rollcall::sim::gloo
