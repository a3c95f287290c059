#pragma once

// What rows measured on a machine changed, and what error is left, for people.

#include <string>
#include <vector>

#include "sim/cost/topology.h"

namespace rollcall::measured {

// The cluster corrected by the rows. Throws std::invalid_argument for fewer than two rows that the model knows.
cost::Cluster calibrate(cost::Cluster cluster, const std::vector<cost::Measurement>& rows);

// One line for each operation: constant, factor, and the median error before, after and left one out.
std::string calibration_text(const cost::Cluster& calibrated, const std::vector<cost::Measurement>& rows);

}  // namespace rollcall::measured
