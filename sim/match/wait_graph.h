#pragma once

// Which ranks wait for which, and which are to blame: the sinks of the wait-for graph, or its cycle.
//
// Nodes are slots in which ranks wait, not ranks: 100,000 ranks in one slot are one node. A rank in a send or receive
// is a node of its own, and those that receive from anyone are one. A node waits for another when a rank it misses is
// blocked there.
//
// Ranks that wait in a slot of a cycle, and that no other rank in the cycle waits for, are victims: the cycle would be
// closed without them.

#include <vector>

#include "sim/match/evidence.h"

namespace rollcall::check {

// A slot in which ranks are blocked, or one rank's message. Ranks are global and ascending.
struct BlockedSlot {
  GroupId group = 0;
  Channel channel = Channel::collectives;
  std::int64_t seq = 0;
  OpKind kind = OpKind::barrier;  // of the first rank's call
  std::vector<Rank> waiting;
  std::vector<Rank> missing;      // members that have not arrived
  std::vector<std::size_t> next;  // indexes of the slots where missing members are blocked
};

struct Blame {
  std::vector<Rank> culprits;      // global, ascending
  bool cycle = false;              // no rank is free: ranks wait for each other in a cycle
  std::vector<std::size_t> slots;  // indexes of the blocked slots to show, the one to blame first
  std::vector<Rank> shortest{};    // of a cycle: the culprits in `slots`, ascending
  std::size_t cycles = 0;          // that have no rank in common
};

// All blocked slots, by (group, seq).
std::vector<BlockedSlot> blocked_slots(const Evidence& evidence);

// The ranks' states, with `running` for those whose wait may still end, because all that they wait for are at work, or
// wait only for such ranks.
std::vector<RankStatus> with_the_hopeful_at_work(const Evidence& evidence,
                                                 const std::vector<BlockedSlot>& slots);

// Culprits are the missing ranks that are not blocked themselves; the slot shown first misses no other rank. When every
// missing rank is blocked too, culprits are the ranks of all cycles, and `slots` is the shortest, in the order in which
// they wait for each other.
Blame find_blame(const Evidence& evidence, const std::vector<BlockedSlot>& slots);

}  // namespace rollcall::check
