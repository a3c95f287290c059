#pragma once

// Rank sets as scenarios write them: 3, [0, 2] or "0-3,8".

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/json/json_tree.h"
#include "sim/report/rank_set.h"

namespace rollcall::scenario {

class Diagnostics;

// A set, or the error in the text. Exactly one of the two.
struct ParsedRanks {
  std::optional<RankSet> ranks;
  std::string problem;
};

// "0-3,8". Every rank must exist in a world of `world_size` and be named once.
ParsedRanks parse_ranks(std::string_view text, Rank world_size);

// The same for a JSON value in any of the three forms. Reports errors, and returns nothing then.
std::optional<RankSet> read_ranks(const Json& value, Rank world_size, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
