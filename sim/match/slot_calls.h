#pragma once

// The calls of a full slot and the bytes of their tensors, as the rules of backends read and write them.

#include <cstddef>
#include <vector>

#include "sim/match/matcher.h"

namespace rollcall::sim {

// By group rank.
std::vector<Op> calls_of(const check::GroupMatcher& matcher, const check::Slot& slot);

// Gives every member the same fate, without a text.
void give_all(check::Slot& slot, std::size_t members, check::Fate fate);

std::int64_t bytes_of(const Op& op);  // of the input

// A tensor's bytes. Not for meta tensors.
std::vector<std::byte> read_bytes(Storage& storage);
// Overwrites as much of the tensor as there are bytes.
void write_bytes(Storage& storage, const std::byte* bytes, std::size_t count);

// Copies what was sent, unchanged, to the front of the receiving tensor. Does nothing if either has no values.
void copy_front(const Op& send, const Op& receive);

}  // namespace rollcall::sim
