#pragma once

// What --cluster names.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "sim/cost/topology.h"

namespace rollcall::cli {

bool names_a_file(const std::string& text);

// A preset's name, or a file that describes a cluster. Throws UsageError or InvalidScenario.
cost::Cluster cluster_of(const std::string& text);

// The same, as a scenario says it.
scenario::OrderedJson cluster_in_scenario(const std::string& text);

}  // namespace rollcall::cli
