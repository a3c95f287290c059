#pragma once

// The calls of one group, member by member, lined up: position k of one member is the call that meets
// position k of every other. Usually the position is collective_seq_id. It is not if batches of messages have
// advanced the counter on some ranks only (torch before 2.5, pytorch#134833), or if one counter
// serves all groups (TorchComms). Then calls are counted, and if a ring has lost its beginning, they are fitted
// to those of the other members. record_id counts all groups together and says nothing about another rank.

#include <span>
#include <vector>

#include "sim/diagnose/dump_ops.h"

namespace rollcall::check {

struct GroupMember {
  Rank rank = 0;
  const RankOps* ops = nullptr;            // null: left no dump
  bool has_group = false;                  // the group is in its pg_config, or it has made a call on it
  std::vector<std::uint32_t> collectives;  // indexes into ops->ops, ascending by position
  // The last position it has issued and the last that it knows to be finished; 0 for none; -1 if
  // neither records nor counters say.
  std::int64_t issued = -1;
  std::int64_t finished = -1;
  // True if its dump is older than those of its peers: they have finished calls that it must have made and that its
  // dump does not hold. Its later calls are unknown.
  bool is_older = false;

  const DumpOp& op(std::size_t index) const { return ops->ops[collectives[index]]; }
  const DumpOp& first() const { return ops->ops[collectives.front()]; }
  const DumpOp& last() const { return ops->ops[collectives.back()]; }
  // Its call at `position`; null if it has not made the call or the ring has lost it.
  const DumpOp* at(std::int64_t position) const;
};

struct GroupCalls {
  std::uint32_t group = 0;
  std::vector<GroupMember> members;  // by rank inside the group
  bool counted = false;              // positions are not collective_seq_id

  const GroupMember* member(Rank rank) const;
};

// All groups of a job, lined up. Sets DumpOp::position in `ranks`, which are in the order of
// JobDump::ranks and borrowed by the result.
std::vector<GroupCalls> line_up(const JobDump& job, std::span<RankOps> ranks);

// True if the member has finished a call after `position` that ends for no rank before all have made it.
bool has_finished_after(const JobDump& job, const GroupMember& member, std::int64_t position);

// The number that the dumps give a position: the collective_seq_id that most members have there.
std::int64_t seq_of(const GroupCalls& group, std::int64_t position);

// The middle one; of an even number, the larger of the two in the middle.
std::int64_t median(std::vector<std::int64_t> values);

}  // namespace rollcall::check
