#pragma once

// How the factors of sim/cost/residuals.cc were fitted, to be repeated: also without one system, to see what they
// are worth where nothing was measured.
//
// The logarithm of measured over expected time is taken for a sum of what each trait adds at a size. The fit
// minimizes absolute errors, so that odd rows do not rule, and pulls every factor towards 1: a trait that one
// system has may say little. A system of many rows counts as one of ten.

#include <string>
#include <vector>

#include "sim/cost/residuals.h"
#include "tests/latency/measured_tables.h"

namespace rollcall::latency {

// Tables of `left_out` are ignored.
cost::Residuals fit_residuals(const std::vector<MeasuredTable>& tables, const std::string& left_out = {});

// What is expected of a row under other factors.
double expected_with(const cost::Residuals& residuals, const MeasuredRow& row);

}  // namespace rollcall::latency
