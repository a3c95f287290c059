#pragma once

// How long collectives took on GPUs, by events around each, beside what is expected of the cluster.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/compare/claims.h"
#include "scenarios/compare/facts.h"
#include "sim/cost/topology.h"

namespace rollcall::compare {

// From what the ranks logged. A call's time is that of the member that waited least for others. The first call of each
// group is left out: it connects.
std::vector<CallTimes> times_of(const std::vector<std::vector<real::Record>>& logs, Rank ranks_per_node);

// Why times of that many ranks on this machine would mean nothing; empty: they mean something. Asks the GPUs.
struct NoTimes {
  std::string because{};
  bool is_stand_in = false;  // they can be kept, to try how that works
};
NoTimes why_no_times(const std::string& backend, Rank ranks_on_this_host);

// One for each kind of call and size, or one that says why there are none.
std::vector<Claim> time_claims(const Facts& real, const std::optional<cost::Cluster>& cluster);

// What `predict --calibrate` and `slow` read: medians. `remark`: what is to be known about them; may be empty.
std::string calibration_file(const std::vector<CallTimes>& times, const std::string& remark);

}  // namespace rollcall::compare
