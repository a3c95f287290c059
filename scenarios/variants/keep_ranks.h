#pragma once

// A scenario with fewer ranks.

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "sim/report/rank_set.h"

namespace rollcall::scenario {

// The scenario with only `kept` of its ranks, which are numbered anew from 0: in programs, groups, inputs, devices,
// hosts and faults, as sources and destinations, and where an expression compares `rank` with a number. Nothing when a
// part of it cannot do without the others. Whether what comes out is still a scenario, and what it comes to, is for the
// caller to try.
std::optional<OrderedJson> keep_ranks(const OrderedJson& scenario, const RankSet& kept);

}  // namespace rollcall::scenario
