#pragma once

// Two runs as one, for laying their ranks' calls side by side: the second run's ranks follow the first one's.
// Groups of one name are one group, so that calls are the same where operation and data are.

#include "sim/report/report.h"

namespace rollcall::viz {

// The verdict is the first run's, or the second's where the first went well; with its culprits where the merged
// report has them.
Report merged_runs(const Report& first, const Report& second);

}  // namespace rollcall::viz
