#pragma once

// Turns the logs of real ranks into the judge's evidence, and into a report. The same matchers pair the calls, the
// same judge names the ranks that are to blame, and the report has the same parts as a simulated one.

#include <vector>

#include "real/rank/options.h"
#include "real/rank/run_log.h"
#include "sim/c10d/process_group.h"
#include "sim/report/report.h"

namespace rollcall::real {

// True if no rank is at work and every call that a rank waits for lacks a member. Calls whose members
// disagree, or of which one has died, may still end for some ranks and are given more time; complete
// calls whose members agree are given all the time that is left. `silence`: how long nothing has been heard.
bool is_stuck(const Options& options, const std::vector<GroupMembers>& groups, const RunLog& log,
              Duration silence);

Report reconstruct(const Options& options, const std::vector<GroupMembers>& groups, const RunLog& log);

}  // namespace rollcall::real
