#pragma once

// Which ranks wait for which in a job that makes no progress.
//
// A rank is held up by its first call, in the order of issue, that is not finished: later ones
// queue behind it on the device. That call waits for every member that has not issued it, and for every
// member that is itself held up by an earlier call. Following these waits leads from the victims to a root
// cause: a rank that owes a call and waits for nothing, a call that all members have made and that does
// not finish, or a cycle.

#include <map>
#include <tuple>
#include <vector>

#include "sim/diagnose/dump_groups.h"

namespace rollcall::check {

// The whole job, indexed for queries.
struct DumpView {
  explicit DumpView(const JobDump& dumps);
  DumpView(const DumpView&) = delete;
  DumpView& operator=(const DumpView&) = delete;

  const RankOps* ops_of(Rank rank) const;  // null: no dump
  const GroupCalls& calls_of(std::uint32_t group) const { return groups[group]; }
  Rank member_of(std::uint32_t group, Rank group_rank) const;  // global; -1: no such member

  const JobDump& job;
  std::vector<std::uint64_t> tokens;  // by call
  std::vector<RankOps> ranks;         // as in `job`
  std::vector<GroupCalls> groups;     // as in `job`
};

// The other end of a message.
struct Counterpart {
  std::uint32_t own = 0;  // the record of this end
  Rank rank = -1;
  const RankOps* ops = nullptr;  // null: left no dump
  const DumpOp* op = nullptr;    // null: has not issued it
  std::uint32_t record = 0;      // of the message itself, inside the batch
};

// Finds the other end of messages: between two ranks the k-th send meets the k-th receive.
class Messages {
 public:
  explicit Messages(const DumpView& view);

  // `record` is a message of `ops`.
  Counterpart counterpart(const RankOps& ops, std::uint32_t record) const;
  // Those of all messages of a call, in order.
  std::vector<Counterpart> counterparts(const RankOps& ops, const DumpOp& op) const;

 private:
  using Lane = std::tuple<std::uint32_t, Rank, Rank>;  // group, source and destination inside it
  struct Item {
    std::uint32_t op = 0;
    std::uint32_t record = 0;
  };
  struct Side {
    std::vector<Item> items;
    std::size_t finished = 0;  // how many of the first items; a batch counts as one
  };
  // The messages of a group in a rank's dump.
  struct Traffic {
    std::size_t count = 0;
    bool is_numbered = true;  // each has a number of its own
  };

  const Side* side(const RankOps& ops, const Lane& lane, bool sends) const;
  bool counts_only(const Side& side, const RankOps& ops, std::uint32_t group) const;
  static const Item* with_number(const Side& side, const RankOps& ops, std::int64_t number);

  const DumpView& view_;
  std::map<std::tuple<Rank, bool, Lane>, Side> sides_;  // by rank and whether it sends
  std::map<std::pair<Rank, std::uint32_t>, Traffic> traffic_;
};

struct Blocker {
  enum class Why : std::uint8_t {
    no_dump,     // nothing is known about it
    no_group,    // it has never used the group
    not_issued,  // it has not made the call
    held_up,     // it has made the call, and is held up by an earlier one
    older,       // its dump lacks the call, and is older than what peers know about the rank
  };

  Rank rank = -1;
  Why why = Why::not_issued;
};

// A call that ranks are held up by. Messages and batches are one rank's own.
struct WaitNode {
  DumpOp::Kind kind = DumpOp::Kind::collective;
  std::uint32_t group = 0;
  std::int64_t position = 0;       // collectives
  std::vector<Rank> ranks;         // held up here, ascending
  std::vector<const DumpOp*> ops;  // their calls
  std::vector<Blocker> blockers;   // ascending by rank
};

struct Waits {
  std::vector<WaitNode> nodes;
  std::map<Rank, std::size_t> node_of;  // of the ranks that are held up
  // Calls that a peer knows to be finished and this rank does not: its device, or the thread that watches it, has
  // failed.
  std::map<Rank, std::vector<const DumpOp*>> unobserved;
};

// True if the dumps show that the job moved while they were written: some rank's dump is older than what a peer knows
// about it.
bool moved_between_dumps(const DumpView& view);

Waits find_waits(const DumpView& view, const Messages& messages);

// Where following blockers ends. Ranks without a dump are listed apart: their calls are unknown.
struct Roots {
  std::vector<std::size_t> complete;             // nodes that wait for no rank: all have made the call
  std::vector<std::vector<std::size_t>> cycles;  // nodes that wait for each other
  std::map<Rank, std::size_t> idle;              // owe the call of that node and wait for nothing
  RankSet lost;                                  // without a dump
};

Roots find_roots(const Waits& waits);

}  // namespace rollcall::check
