#pragma once

// How long collectives took on GPUs, measured by events around each, compared with what is expected of the cluster.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/compare/claims.h"
#include "scenarios/compare/facts.h"
#include "sim/cost/topology.h"

namespace rollcall::compare {

// Computed from the ranks' logs. A call's time is that of the member that waited least for others. The first call of
// each group is left out, because it connects.
std::vector<CallTimes> times_of(const std::vector<std::vector<real::Record>>& logs, Rank ranks_per_node);

// The reason why times of that many ranks on this machine would be meaningless; empty if they are not. Asks the GPUs.
struct NoTimes {
  std::string because{};
  bool is_stand_in = false;  // the times can be saved anyway, to try the procedure
};
NoTimes why_no_times(const std::string& backend, Rank ranks_on_this_host);

// One claim for each kind of call and size, or one that says why there are none.
std::vector<Claim> time_claims(const Facts& real, const std::optional<cost::Cluster>& cluster);

// The file that `predict --calibrate` and `slow` read: medians. `remark`: what users should know about them; may be
// empty.
std::string calibration_file(const std::vector<CallTimes>& times, const std::string& remark);

}  // namespace rollcall::compare
