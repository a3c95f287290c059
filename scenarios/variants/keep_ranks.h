#pragma once

// Makes a scenario with fewer ranks.

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "sim/report/rank_set.h"

namespace rollcall::scenario {

// Returns the scenario with only the ranks in `kept`, renumbered from 0: in programs, groups, inputs, devices, hosts,
// and faults, as sources and destinations, and where an expression compares `rank` with a number. Nothing if a part of
// it requires the other ranks. The caller must try whether the result is still a scenario, and what its outcome is.
std::optional<OrderedJson> keep_ranks(const OrderedJson& scenario, const RankSet& kept);

}  // namespace rollcall::scenario
