#pragma once

// What predictions of operations, scenarios and scripts share.

#include <vector>

#include "scenarios/cli/cli.h"
#include "scenarios/format/scenario.h"
#include "sim/cost/calibration.h"

namespace rollcall::cli {

// The cluster under the options that say how it is used, and what was measured on it.
struct AskedCluster {
  cost::Cluster cluster;
  std::vector<cost::Measurement> rows;  // of --calibrate
};
AskedCluster asked_cluster(const PredictArguments& arguments, cost::Cluster cluster);

void put_on_cluster(scenario::Scenario& loaded, const cost::Cluster& cluster);

// That the run did not come to its end, where it did not.
void say_verdict(const Report& report);

ExitCode predict_script(const CommandLine& line);

}  // namespace rollcall::cli
