#pragma once

// The calls of the ranks side by side, around the place where they diverge: what was called, by which ranks, up to
// the first difference and a little beyond it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

struct CallSequences {
  struct Cell {
    std::string call;    // "all_reduce #5 (float32 x 4, SUM)"; empty: no call here
    std::string origin;  // " from gradients at train.json:12:7"
    bool never_returned = false;
    bool differs =
        false;  // from the call of most ranks in this row, or of most innocent ranks if there are any
  };
  // Of a call; an empty one for null.
  static Cell cell_of(const Span* span, const Timeline& timeline);
  struct Column {  // ranks that made the same calls
    RankSet ranks;
    bool is_culprit = false;
    std::vector<Cell> cells;  // one per row
  };

  std::vector<Column> columns;  // the one with the most ranks first
  std::size_t rows = 0;
  std::size_t earlier = 0;  // calls before the first row, the same in all columns
  std::size_t later = 0;    // rows after the last, not shown
  std::size_t columns_left_out = 0;
  std::optional<std::size_t> first_difference;  // a row
};

// Compares the culprits with the ranks of the group where the run failed, or with all ranks if that group is unknown:
// their calls on groups that all of them are members of, and the calls they are stuck in. If ranks have roles, as the
// stages of a pipeline do, the culprits are compared with their counterparts in other pipelines. Calls are in the
// order in which they were made. Needs a timeline; empty without one, and if no ranks are comparable.
CallSequences call_sequences(const Report& report);

}  // namespace rollcall::viz
