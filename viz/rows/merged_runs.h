#pragma once

// Merges two runs to show their ranks' calls side by side: the second run's ranks follow the first one's.
// Groups with the same name become one group, so that calls are equal if their operation and data are.
// The verdict is the first run's, or the second's if the first succeeded; its culprits are renumbered as in the
// merged report.

#include "sim/report/report.h"

namespace rollcall::viz {

// The verdict is the first run's, or the second's where the first went well; with its culprits where the merged
// report has them.
Report merged_runs(const Report& first, const Report& second);

}  // namespace rollcall::viz
