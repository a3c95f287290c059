#pragma once

// Who waits for whom, as a picture shows it: one node per state, not per rank, in columns, so that every
// wait outside a cycle points to the right.

#include <cstddef>
#include <vector>

#include "sim/report/report.h"
#include "viz/rows/state_rows.h"

namespace rollcall::viz {

struct WaitGraph {
  struct Node {
    RankState state;
    std::size_t column = 0;  // from the left
    std::size_t row = 0;     // in its column, from the top
    bool in_cycle = false;  // it waits, in the end, for itself
  };
  struct Edge {
    std::size_t from = 0;  // indexes of nodes; equal when ranks of one state wait for each other
    std::size_t to = 0;
    bool any = false;  // one of the ranks waited for would do: a receive from anyone
    bool in_cycle = false;
  };

  std::vector<Node> nodes;  // culprits first
  std::vector<Edge> edges;
  std::size_t left_out = 0;  // states that take part and were not drawn
};

// What is most worth seeing of it: culprits, those who wait for them, and so on, `most` nodes in all.
// Without edges when nobody waits for anybody.
WaitGraph wait_graph(const Report& report, std::size_t most = 24);

}  // namespace rollcall::viz
