#pragma once

// The table "where is every rank": one row per state, not per rank.

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/report/report.h"
#include "viz/base/text_page.h"

namespace rollcall::viz {

// One row: classes with the same text, except for the number of inputs that their ranks took.
struct RankState {
  RankClass ranks;
  std::int64_t fewest_inputs = -1;
  std::int64_t inputs_max = -1;
  bool is_culprit = false;
};

// Culprits first, the others by rank, without those of `skip`. If there are more than `most`, states with the same
// text are folded; 0: never.
std::vector<RankState> rank_states(const Report& report, const RankSet& skip, std::size_t most);

// Culprits first and marked, the others by rank. Leaves out the ranks of `skip`, which a table above
// shows. At most `most` rows, the last of which then counts the missing ones; 0: no limit.
std::vector<Row> state_rows(const Report& report, const RankSet& skip, std::size_t most);

// "... and 12 more lines (-v shows all)"
Row more_row(std::size_t count, std::string_view noun);

}  // namespace rollcall::viz
