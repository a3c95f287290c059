#pragma once

// A run that ends well although ranks use their groups in different orders: a warning, and no verdict.

#include "sim/report/report.h"

namespace rollcall::scenario {

struct Scenario;

// Adds a warning for the first two groups that ranks in both use in different orders. Only where a run is well and
// small enough to be repeated.
void warn_about_order(const Scenario& scenario, Report& report);

}  // namespace rollcall::scenario
