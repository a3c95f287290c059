#pragma once

// What a matched collective does to host memory: the reference meaning of every operation. Pure
// arithmetic; it knows nothing of ranks' order of arrival, time or fibers, so results are the same
// bits on every machine and in every schedule: reductions go in group-rank order.

#include <span>

#include "sim/dist/op.h"

namespace rollcall {

// All members' calls agree with `op` in kind, dtype, numel, reduction and root. `members` holds their
// tensors by group rank. Meta tensors are left alone.
void apply_op(const Op& op, std::span<const OpTensors> members);

// The common case of apply_op: all_reduce, broadcast or reduce where every tensor is uniform.
// `values[r]` is group rank r's contribution; `storages[r]` receives the result. No allocation.
void apply_uniform(const Op& op, std::span<const Bits> values, std::span<Storage* const> storages);

// True for the kinds that apply_uniform serves.
bool has_uniform_form(OpKind kind);

}  // namespace rollcall
