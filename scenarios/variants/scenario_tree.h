#pragma once

// A scenario file as a JSON tree, for making variants of it.

#include <nlohmann/json_fwd.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/import/scenario_writer.h"

namespace rollcall::scenario {

// `address` names a file that can be loaded; a matrix is reduced to the one case. `scenario` is the loaded
// one.
OrderedJson tree_of(const std::string& address, const Scenario& scenario);

}  // namespace rollcall::scenario
