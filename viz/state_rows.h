#pragma once

// The table "where is every rank": one row per state, not per rank.

#include <vector>

#include "sim/report/report.h"
#include "viz/text_page.h"

namespace rollcall::viz {

// Culprits first and marked, the others by rank. Ranks of `skip` are left out: a table above shows
// them. `most` rows at most, the last of which then counts those that are missing; 0: no limit.
std::vector<Row> state_rows(const Report& report, const RankSet& skip, std::size_t most);

// "... and 12 more lines (-v shows all)"
Row more_row(std::size_t count, std::string_view noun);

}  // namespace rollcall::viz
