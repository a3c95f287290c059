#pragma once

// Outlook: what is known of a program besides the evidence of its run. Evidence ends where a run ends; who is to blame
// for a hang is often decided by what the ranks would have called next. Whoever has the program can find that out by
// running it again; whoever has logs knows what the ranks have called so far.
//
// Asked after a run, and only where its verdict leaves something open. This one knows nothing.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/scope_table.h"
#include "sim/c10d/op.h"
#include "sim/c10d/process_group.h"

namespace rollcall::check {

// One call of a rank's program, in the terms of a report.
struct ProgramCall {
  OpKind kind = OpKind::barrier;
  std::string group{};
  std::int64_t seq = 0;  // on that group, messages apart
  std::int64_t numel = 0;
  std::string dtype{};
  std::string label{};
  bool is_root = false;  // the rank itself is the call's src or dst
  Rank peer = -1;        // messages: the other end, global; -1: anyone
  std::int32_t tag = 0;  // messages, where tags count
};

// Calls of a rank on a group that are counted together have one number: collectives, messages, and each kind of call
// that makes or ends groups.
int count_of(OpKind kind);

// `op` as a call of its rank's program; with its tag where messages are told apart by it.
ProgramCall program_call(const Op& op, const GroupMembers& group, std::int64_t seq, std::string label,
                         bool has_tags);

// What one rank calls, in order.
struct RankProgram {
  Rank rank = 0;
  std::vector<ProgramCall> calls;
  std::vector<std::string> sets{};  // the keys of the store that it sets, in any order
  bool is_whole = true;             // to its end; otherwise as far as the rank got
};

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

  // What each of `ranks`, ascending, would call if every call completed at once. Ranks that nothing is known of are
  // left out.
  virtual std::vector<RankProgram> programs(const std::vector<Rank>&) const { return {}; }
  // What these ranks issue when all of them run.
  virtual StepLog steps(const std::vector<Rank>&) const { return {}; }
};

}  // namespace rollcall::check
