#pragma once

// What a matched collective does to host memory: the reference meaning of every operation. Pure arithmetic, without
// ranks' order of arrival, time or fibers, so results are bit-identical on every machine and in every schedule:
// reductions run in group-rank order.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

// All members' calls agree with `op` in kind, dtype, reduction and root, and in numel unless it is uneven. `members`
// holds their tensors by group rank. If a part and its place differ in length, the shorter length is copied. Meta
// tensors are left alone.
void apply_op(const Op& op, std::span<const OpTensors> members);

// The elements that a member sends to each member, and those that it expects from each. For operations whose parts may
// differ in size: all_gather, reduce_scatter with lists, all_to_all*.
std::vector<std::int64_t> sent_parts(const Op& op, const OpTensors& member, std::size_t members);
std::vector<std::int64_t> expected_parts(const Op& op, const OpTensors& member, std::size_t members);

// True when every part that a member sends has the size its receiver expects.
bool parts_fit(const Op& op, std::span<const OpTensors> members);

// A part that is not as large as its receiver expects. Ranks inside the group, sizes in elements.
struct PartMisfit {
  Rank sender = 0;
  Rank receiver = 0;
  std::int64_t sent = 0;
  std::int64_t expected = 0;
};
// All of them, by receiver, then sender.
std::vector<PartMisfit> part_misfits(const Op& op, std::span<const OpTensors> members);

// How many more bytes apply_op would need for results that stop being uniform. 0 in the common case that all members
// contribute the same value. An upper bound; INT64_MAX on overflow.
std::int64_t dense_bytes(const Op& op, std::span<const OpTensors> members);

// The common case of apply_op: all_reduce, broadcast or reduce where every tensor is uniform.
// `values[r]` is group rank r's contribution; `storages[r]` receives the result. No allocation.
void apply_uniform(const Op& op, std::span<const Bits> values, std::span<Storage* const> storages);

// Applies a send that met a receive of the same size and dtype.
void apply_message(Storage& target, Storage& source);

// True for the kinds that apply_uniform serves.
bool has_uniform_form(OpKind kind);

}  // namespace rollcall
