#pragma once

// Fits the factors of sim/cost/residuals.cc again, also without one system, to see how good they are where nothing was
// measured.
//
// The model takes the logarithm of measured over expected time for a sum of what each trait adds at a size. The fit
// minimizes absolute errors, so that outliers do not dominate, and pulls every factor toward 1, because a trait that
// only one system has may say little. A system of many rows counts as one of ten rows.

#include <string>
#include <vector>

#include "sim/cost/residuals.h"
#include "tests/latency/measured_tables.h"

namespace rollcall::latency {

// Ignores the tables of the system `left_out`.
cost::Residuals fit_residuals(const std::vector<MeasuredTable>& tables, const std::string& left_out = {});

// Returns the expected time of a row with other factors.
double expected_with(const cost::Residuals& residuals, const MeasuredRow& row);

}  // namespace rollcall::latency
