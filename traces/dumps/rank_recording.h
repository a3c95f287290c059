#pragma once

// What one file says about one rank, whatever its format.

#include <optional>

#include "traces/dumps/dump_tables.h"

namespace rollcall::traces {

// Its numbers refer to its own tables. A file may also only name groups, and be of no rank.
struct RankRecording {
  std::optional<Rank> rank;  // where the file says so itself; otherwise its name does
  bool names_groups_only = false;
  check::RankDump dump;
  DumpTables tables;
  // Gloo lists the group made last, by no name and by its own ranks. That says how many ranks there are at least.
  Rank ranks_at_least = 0;
};

}  // namespace rollcall::traces
