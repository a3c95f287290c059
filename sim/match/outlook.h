#pragma once

// Outlook: what is known about a program besides the evidence of its run. Evidence ends where a run ends, but the
// ranks' next calls often decide which rank is to blame for a hang. With the program at hand, running it again shows
// them; with logs, only the calls so far are known.
//
// Used after a run, and only where its verdict leaves something open. This base class knows nothing.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/scope_table.h"
#include "sim/c10d/op.h"
#include "sim/c10d/process_group.h"
#include "sim/report/finding_kinds.h"

namespace rollcall::check {

// One call of a rank's program, in the terms of a report.
struct ProgramCall {
  OpKind kind = OpKind::barrier;
  std::string group{};
  std::int64_t seq = 0;  // on that group; messages are counted separately
  std::int64_t numel = 0;
  std::string dtype{};
  std::string label{};
  bool is_root = false;  // the rank itself is the call's src or dst
  Rank peer = -1;        // messages: the other end, global; -1: anyone
  std::int32_t tag = 0;  // messages, where tags count
  ReduceOp reduce = ReduceOp::sum;
  Rank root = -1;  // inside the group; -1: none
  bool async_op = false;
  std::int64_t batch = -1;          // messages of one batch_isend_irecv: which call began it; -1: not in one
  bool shadow = false;              // of a rank that has joined
  std::uint32_t group_index = 0;    // into RankProgram::groups
  std::int64_t group_made_by = -1;  // as in ProgramGroup
  std::string pairing{};            // what it belongs with, by its scope; may be empty
  bool is_strict = false;           // compared with calls without a pairing, too
  std::string site{};               // "train.json:12:9"; may be empty
  // Of all_to_all_single with parts of its own: elements for each member, and from each.
  std::vector<std::int64_t> given_parts{};
  std::vector<std::int64_t> filled_parts{};

  friend bool operator==(const ProgramCall&, const ProgramCall&) = default;
};

// A group that a rank calls on.
struct ProgramGroup {
  std::string name;
  std::vector<Rank> ranks{};  // global; empty: the whole world
  std::int64_t made_by = -1;  // which call of its rank made it, from 0; -1: it existed before
  bool is_by_use = false;     // it may have more ranks: only those that have called on it are known
};

// Calls of a rank on a group that are counted together have the same number: collectives, messages, and each kind of
// call that makes or destroys groups.
int count_of(OpKind kind);

// `op` as a call of its rank's program; with its tag where messages are matched by tag.
ProgramCall program_call(const Op& op, const GroupMembers& group, std::int64_t seq, const ScopeTable& scopes,
                         bool has_tags);

// The calls of one rank, in order.
struct RankProgram {
  Rank rank = 0;
  std::vector<ProgramCall> calls;
  std::vector<ProgramGroup> groups{};
  std::vector<std::string> sets{};  // the keys of the store that it sets, in any order
  bool is_whole = true;             // to its end; otherwise as far as the rank got
  bool is_endless = false;          // not whole because it was cut off after very many calls
};

// A change to the calls of one rank: before its call number `at`, counted from 0 over all groups, it makes the calls
// `inserted`, and then `dropped` calls are left out. If `at` is beyond the last call, they follow the end of its
// program.
struct CallEdit {
  Rank rank = 0;
  std::int64_t at = 0;
  std::int64_t dropped = 0;
  std::vector<ProgramCall> inserted{};

  friend bool operator==(const CallEdit&, const CallEdit&) = default;
};
using CallEdits = std::vector<CallEdit>;  // by rank, then by place

// The edits of one rank; borrowed.
std::span<const CallEdit> edits_of(const CallEdits& edits, Rank rank);

// One collective as a rank issued it.
struct Step {
  std::string text;   // "all_reduce 1000 float32"
  std::string label;  // the scopes it was issued in
  std::string site;   // "train.json:12:9"; may be empty
  GroupId group = 0;
  std::int64_t seq = 0;
  bool shadow = false;
  bool is_presence = false;  // Join's own: it begins an iteration, or a shadow of one
  bool is_joins = false;     // Join's own
};
using Steps = std::vector<Step>;

Step step_of(const Op& op, const ScopeTable& scopes, std::int64_t seq);

// The collectives that ranks issued in a run.
struct StepLog {
  std::map<Rank, Steps> ranks{};
  std::map<GroupId, std::string> groups{};  // names of all but the world

  std::string group_name(GroupId group) const {
    const auto found = groups.find(group);
    return found == groups.end() ? "world" : found->second;
  }
};

class Outlook {
 public:
  virtual ~Outlook() = default;

  // The calls that each of `ranks`, ascending, would make if every call completed at once. Ranks that nothing is known
  // about are left out.
  virtual std::vector<RankProgram> programs(const std::vector<Rank>&) const { return {}; }
  // The collectives that these ranks issue when all of them run.
  virtual StepLog steps(const std::vector<Rank>&) const { return {}; }
  // True if changes can be tried.
  virtual bool can_run_again() const { return false; }
  // The finding of a run with these changed calls; empty if it cannot be tried.
  virtual std::optional<FindingKind> outcome_of(const CallEdits&) const { return std::nullopt; }
};

}  // namespace rollcall::check
