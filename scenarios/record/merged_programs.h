#pragma once

// Merges the ranks' programs into one program for all ranks.

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"
#include "sim/report/rank_set.h"

namespace rollcall::scenario {

// The statements of ranks that all did the same, with loops rolled up.
struct RankProgram {
  RankSet ranks;
  std::vector<OrderedJson> statements;
};

// Statements of all ranks are there once; those of only some ranks are under an `if`; a loop that some ranks leave
// earlier than others has a number of iterations that depends on the rank. Every rank has the statements of its own
// program, in their order. `programs` name every rank once.
std::vector<OrderedJson> merge_programs(const std::vector<RankProgram>& programs);

}  // namespace rollcall::scenario
