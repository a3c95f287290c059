#pragma once

// Finds the loops in a list of statements that was recorded call by call.

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"

namespace rollcall::scenario {

// A program as numbers that stand for `statements`: equal numbers mean equal statements.
struct NumberedProgram {
  const std::vector<OrderedJson>& statements;
  std::vector<std::uint32_t> numbers;
};

// Returns the same statements in the same order, with repeated stretches as {"repeat": n, "do": [...]}.
// Greedy: from left to right, whatever saves most; loops inside loops are found.
std::vector<OrderedJson> roll_up(const NumberedProgram& program);

}  // namespace rollcall::scenario
