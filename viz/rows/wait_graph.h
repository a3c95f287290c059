#pragma once

// The wait-for graph as a picture shows it: one node per state, not per rank, in columns, so that every
// wait outside a cycle points to the right. A cycle in which each rank waits for only one other is drawn as a ring.

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
    bool in_cycle = false;   // it waits for itself, directly or through others
    bool in_ring = false;    // in a cycle where each waits for one other; drawn as a ring, in walking order
  };
  struct Edge {
    std::size_t from = 0;  // indexes of nodes; equal if ranks of one state wait for each other
    std::size_t to = 0;
    bool any = false;  // any one of the ranks is enough: a receive from any source
    bool in_cycle = false;
    bool in_ring = false;
    std::string
        label{};  // where `from` waits: a group, or "send" or "recv" for a message; empty for the world
  };

  std::vector<Node> nodes;  // culprits first
  std::vector<Edge> edges;
  std::size_t left_out = 0;  // states that take part but are not drawn
};

// Returns the most important part of the graph: culprits, the ranks that wait for them, and so on, up to 24 nodes.
// Has no edges if no rank waits for another.
WaitGraph wait_graph(const Report& report);

}  // namespace rollcall::viz
