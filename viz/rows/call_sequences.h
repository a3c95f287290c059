#pragma once

// The calls of the ranks side by side, around the place where they part: what was called, by whom, up to
// the first difference and a little beyond.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

struct CallSequences {
  struct Cell {
    std::string call;    // "all_reduce #5 (float32 x 4, SUM)"; empty: nothing here
    std::string origin;  // " from gradients at train.json:12:7"
    bool never_returned = false;
    bool differs =
        false;  // from what most ranks did in this row; of innocent ranks, as long as there are any
  };
  struct Column {  // ranks that made the same calls
    RankSet ranks;
    bool is_culprit = false;
    std::vector<Cell> cells;  // one a row
  };

  std::vector<Column> columns;  // the most ranks first
  std::size_t rows = 0;
  std::size_t earlier = 0;  // calls before the first row, the same everywhere
  std::size_t later = 0;    // rows after the last, not shown
  std::size_t columns_left_out = 0;
  std::optional<std::size_t> first_difference;  // a row
};

// Of the culprits and the ranks of the group where the run came apart, or of all when it is not known; their
// calls on groups that all of them are members of, and the calls they are stuck in. Where ranks have roles, as the
// stages of a pipeline do, the culprits stand beside their like in other pipelines. In the order in which the calls
// were made. Needs a timeline; empty without one, and where nobody is comparable.
CallSequences call_sequences(const Report& report);

}  // namespace rollcall::viz
