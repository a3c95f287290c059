#pragma once

// StepLog: the collectives that the ranks of a scenario issue, found out by running it once more.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::scenario {

struct Scenario;

// One collective as a rank issued it.
struct Step {
  std::string text;   // "all_reduce 1000 float32"
  std::string label;  // the scopes it was issued in
  GroupId group = 0;
  std::int64_t seq = 0;
  bool shadow = false;
  bool is_presence = false;  // Join's own: it begins an iteration, or a shadow of one
  bool is_joins = false;     // Join's own
};
using Steps = std::vector<Step>;

struct StepLog {
  std::map<Rank, Steps> ranks;
  std::map<GroupId, std::string> groups;

  const Steps& of(Rank rank) const;
  std::string group_name(GroupId group) const;
};

// Of these ranks alone: texts of a large job are many.
StepLog record_steps(const Scenario& scenario, const std::vector<Rank>& ranks);

}  // namespace rollcall::scenario
