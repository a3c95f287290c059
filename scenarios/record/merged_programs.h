#pragma once

// One program for all ranks, made of a program per rank.

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "sim/report/rank_set.h"

namespace rollcall::scenario {

// The statements of ranks that all did the same, loops rolled up.
struct RankProgram {
  RankSet ranks;
  std::vector<OrderedJson> statements;
};

// What all ranks do is there once; what only some do stands under an `if`; a loop that some leave earlier than others
// has a number of turns that depends on the rank. Every rank has the statements of its own program, in their order.
// `programs` name every rank once.
std::vector<OrderedJson> merge_programs(const std::vector<RankProgram>& programs);

}  // namespace rollcall::scenario
