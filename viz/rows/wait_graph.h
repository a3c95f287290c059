#pragma once

// Who waits for whom, as a picture shows it: one node per state, not per rank, in columns, so that every
// wait outside a cycle points to the right. A cycle is drawn as one where nobody of it waits for two.

#include <cstddef>
#include <string>
#include <vector>

#include "sim/report/report.h"
#include "viz/rows/state_rows.h"

namespace rollcall::viz {

struct WaitGraph {
  struct Node {
    RankState state;
    std::size_t column = 0;  // from the left
    std::size_t row = 0;     // in its column, from the top
    bool in_cycle = false;   // it waits, in the end, for itself
    bool in_ring = false;    // of a cycle in which each waits for one other; drawn around, in walking order
  };
  struct Edge {
    std::size_t from = 0;  // indexes of nodes; equal when ranks of one state wait for each other
    std::size_t to = 0;
    bool any = false;  // one of the ranks waited for would do: a receive from anyone
    bool in_cycle = false;
    bool in_ring = false;
    std::string
        label{};  // where `from` waits: a group, or what it does with a message; the world says nothing
  };

  std::vector<Node> nodes;  // culprits first
  std::vector<Edge> edges;
  std::size_t left_out = 0;  // states that take part and were not drawn
};

// What is most worth seeing of it: culprits, those who wait for them, and so on, `most` nodes in all.
// Without edges when nobody waits for anybody.
WaitGraph wait_graph(const Report& report, std::size_t most = 24);

}  // namespace rollcall::viz
