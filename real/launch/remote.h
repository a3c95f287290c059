#pragma once

// The supervisor of one rank in a launched run, on the machine where the launcher put it: starts the rank, sends
// its log to the hub of rank 0, and ends it when the hub closes the connection or is gone.

#include "real/launch/launch.h"
#include "real/rank/backend_entry.h"
#include "real/rank/environment.h"

namespace rollcall::real {

// Returns when the run is over. Throws std::runtime_error if there is no hub.
void supervise_for_hub(const Options& options, const Program& program, const BackendEntry& backend,
                       const std::vector<GroupMembers>& groups, const LaunchedRank& launched);

}  // namespace rollcall::real
