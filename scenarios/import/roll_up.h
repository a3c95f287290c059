#pragma once

// Finds the loops in a list of statements that was recorded call by call.

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/import/scenario_writer.h"

namespace rollcall::scenario {

// A program as numbers, each of which stands for one of `statements`: equal numbers, equal statements.
struct NumberedProgram {
  const std::vector<OrderedJson>& statements;
  std::vector<std::uint32_t> numbers;
};

// The same statements in the same order, with stretches that repeat themselves as {"repeat": n, "do": [...]}.
// Greedy: from left to right whatever saves most; loops in loops are found.
std::vector<OrderedJson> roll_up(const NumberedProgram& program);

}  // namespace rollcall::scenario
