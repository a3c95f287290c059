#pragma once

// What one file says about one rank, whatever its format.

#include <optional>

#include "traces/dumps/dump_tables.h"

namespace rollcall::traces {

// Its numbers refer to its own tables. A file may also only name groups and belong to no rank.
struct RankRecording {
  std::optional<Rank> rank;  // if the file itself says so; otherwise the file's name does
  bool names_groups_only = false;
  check::RankDump dump;
  DumpTables tables;
  // Gloo lists only the group made last, without a name and with ranks inside the group. This gives a lower bound on
  // the number of ranks.
  Rank ranks_at_least = 0;
};

}  // namespace rollcall::traces
