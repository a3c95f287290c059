#pragma once

// Rank sets as scenarios write them: 3, [0, 2] or "0-3,8".

#include <optional>
#include <string_view>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_tree.h"
#include "sim/report/rank_set.h"

namespace rollcall::scenario {

// "0-3,8". Every rank must exist in a world of `world_size` and be named once.
Parsed<RankSet> parse_ranks(std::string_view text, Rank world_size);

// The same for a JSON value in any of the three forms, and for a key. Report errors, and return nothing then.
std::optional<RankSet> read_ranks(const Json& value, Rank world_size, Diagnostics& diagnostics);
std::optional<RankSet> read_key_ranks(const Json& member, Rank world_size, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
