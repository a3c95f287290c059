#pragma once

// Gloo's order of additions, for reductions whose calls agree. The ring (gloo_ring.cc) adds up each chunk
// of the tensor starting at a different rank, so elements of one tensor may be rounded differently; and a
// reduce leaves partial sums on the other ranks. This is the ring's result without its messages.

#include <span>

#include "sim/c10d/op.h"

namespace rollcall::sim::gloo {

// True if elements with these values may sum up to other bits in another order. Integers, equal values
// and small whole numbers never do; the answer may be true for some others that do not either. Cheap, because
// it is asked for every reduction.
bool order_matters(ReduceOp reduce, Dtype dtype, std::span<const Bits> values);

// An all_reduce or reduce. `tensors`: by group rank, at least two. `values`: the contributions of all ranks if
// all tensors are uniform, empty otherwise.
void reduce_by_ring(const Op& op, std::span<const Bits> values, std::span<Storage* const> tensors);

// A reduce_scatter, as torch builds it from these: with lists, a reduce to each rank in turn; with flat tensors, an
// all_reduce of which each rank keeps its part (ProcessGroupGloo.cpp, reduce_scatter_tensor_coalesced; the first as the
// results of PyTorch 2.14 show). `calls`: by group rank.
void reduce_and_scatter(const Op& op, std::span<const Op> calls);

}  // namespace rollcall::sim::gloo
