#pragma once

// A scenario file as a JSON tree, to make others of it.

#include <nlohmann/json_fwd.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/import/scenario_writer.h"

namespace rollcall::scenario {

// Of a file that can be loaded; a matrix is brought down to the one case. `scenario` is what was loaded.
OrderedJson tree_of(const std::string& address, const Scenario& scenario);

}  // namespace rollcall::scenario
