#pragma once

// Corrects a cluster by rows measured on it, and describes what changed and the error that is left.

#include <string>
#include <vector>

#include "sim/cost/topology.h"

namespace rollcall::measured {

// Returns the cluster corrected by the rows. Throws std::invalid_argument if the rows have fewer than two different
// sizes.
cost::Cluster calibrate(cost::Cluster cluster, const std::vector<cost::Measurement>& rows);

// One line per operation: constant, factor, and the median error before the correction and with rows left out in turn.
std::string calibration_text(const cost::Cluster& calibrated, const std::vector<cost::Measurement>& rows);

}  // namespace rollcall::measured
