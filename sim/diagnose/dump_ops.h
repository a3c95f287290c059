#pragma once

// Turns records into operations: the calls that a rank issued, in order, and which of them are finished.
//
// A batch of messages is several records and a marker that closes it; only the marker has a state, its
// members stay "scheduled" forever. The same goes for coalesced collectives since version 2.7. Records
// of an aborted communicator say "completed" after the timeout; those calls did not finish in time. A dump
// of only unfinished calls lacks the markers of finished batches and still has their members.

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "sim/diagnose/dump.h"

namespace rollcall::check {

struct DumpOp {
  enum class Kind : std::uint8_t { collective, message, batch };

  Kind kind = Kind::collective;
  bool finished = false;
  bool proven = false;   // finished, and not by failing: the recorder says so, or the rank continued
  bool started = false;  // seen on the device; only where events are recorded
  std::uint32_t group = 0;
  std::uint32_t record = 0;      // the record with the state
  std::uint32_t first_part = 0;  // index into RankOps::parts
  std::uint32_t part_count = 0;
  std::int64_t position = 0;  // collectives: which call of the group this is, the same for all members
  std::uint64_t token = 0;    // equal for operations that may meet; see agreement_tokens
};

struct RankOps {
  const RankDump* dump = nullptr;
  std::vector<DumpOp> ops;           // in the order of issue
  std::vector<std::uint32_t> parts;  // records; an operation without a marker has its own record
  bool has_start_events = false;     // some call was seen to start: "scheduled" then means not started

  std::span<const std::uint32_t> parts_of(const DumpOp& op) const {
    return {parts.data() + op.first_part, op.part_count};
  }
  const DumpRecord& record_of(const DumpOp& op) const { return dump->records[op.record]; }
  Rank rank() const { return dump->rank; }
};

// The one with this rank of a range that ascends by rank; null if there is none.
template <typename Range, typename RankOf>
auto* find_rank(Range& range, Rank rank, RankOf rank_of) {
  const auto place = std::ranges::lower_bound(range, rank, {}, rank_of);
  return place != range.end() && std::invoke(rank_of, *place) == rank ? &*place : nullptr;
}

// True for operations with a root. The root is not recorded, and it may finish before all ranks make the call.
bool has_root(const std::string& op);

// True for operations whose shapes may differ from rank to rank: all-to-all.
bool shapes_may_differ(const std::string& op);
// True unless shapes that have to agree differ. Both calls are of one operation.
bool same_shapes(const DumpCall& a, const DumpCall& b);

// By index into JobDump::calls: a number shared by calls that may meet in one collective. Shapes that may differ from
// rank to rank are not compared, and of gather and scatter only what all members pass.
std::vector<std::uint64_t> agreement_tokens(const JobDump& job);

// `tokens` from agreement_tokens.
RankOps operations_of(const JobDump& job, const RankDump& dump, const std::vector<std::uint64_t>& tokens);

}  // namespace rollcall::check
