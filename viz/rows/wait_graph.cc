#include "viz/rows/wait_graph.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace rollcall::viz {

namespace {

// If there are more states than this, those with the same text are folded.
constexpr std::size_t states_unfolded = 12;
constexpr std::size_t nodes_max = 24;

// For each state, the states that it waits for, by index.
using Links = std::vector<std::set<std::size_t>>;

constexpr std::size_t no_state = static_cast<std::size_t>(-1);

std::vector<std::size_t> states_by_rank(const std::vector<RankState>& states, Rank world_size) {
  std::vector<std::size_t> of_rank(static_cast<std::size_t>(world_size), no_state);
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (const Rank rank : states[i].ranks.ranks.to_vector()) {
      of_rank[static_cast<std::size_t>(rank)] = i;
    }
  }
  return of_rank;
}

Links links_between(const std::vector<RankState>& states, Rank world_size) {
  const std::vector<std::size_t> of_rank = states_by_rank(states, world_size);
  Links links(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (const Rank rank : states[i].ranks.waits_for.to_vector()) {
      const std::size_t target = of_rank[static_cast<std::size_t>(rank)];
      if (target != no_state) {
        links[i].insert(target);
      }
    }
  }
  return links;
}

// The states that wait or are waited for, starting with the culprits.
std::vector<std::size_t> by_importance(const std::vector<RankState>& states, const Links& links) {
  Links neighbors = links;
  for (std::size_t i = 0; i < links.size(); ++i) {
    for (const std::size_t target : links[i]) {
      neighbors[target].insert(i);
    }
  }
  std::vector<std::size_t> order;
  std::vector<bool> seen(states.size(), false);
  for (std::size_t start = 0; start < states.size(); ++start) {  // culprits come first in `states`
    std::deque<std::size_t> next;
    const auto meet = [&](std::size_t state) {
      if (!seen[state] && !neighbors[state].empty()) {
        seen[state] = true;
        next.push_back(state);
      }
    };
    for (meet(start); !next.empty(); next.pop_front()) {
      order.push_back(next.front());
      for (const std::size_t neighbor : neighbors[next.front()]) {
        meet(neighbor);
      }
    }
  }
  return order;
}

bool is_any(const RankState& state) {
  return state.ranks.call && state.ranks.call->op == "recv" && state.ranks.call->peer < 0;
}

std::string label_of(const RankState& state) {
  const std::optional<Call>& call = state.ranks.call;
  if (!call || !call->key.empty()) {
    return {};
  }
  return call->op == "send" || call->op == "recv" ? call->op : call->group == "world" ? "" : call->group;
}

WaitGraph graph_of(const std::vector<RankState>& states, const Links& links,
                   const std::vector<std::size_t>& chosen) {
  WaitGraph graph;
  std::map<std::size_t, std::size_t> node_of;
  for (const std::size_t state : chosen) {
    node_of[state] = graph.nodes.size();
    graph.nodes.push_back({.state = states[state]});
  }
  for (const std::size_t state : chosen) {
    for (const std::size_t target : links[state]) {
      if (node_of.contains(target)) {
        graph.edges.push_back({.from = node_of[state],
                               .to = node_of[target],
                               .any = is_any(states[state]),
                               .label = label_of(states[state])});
      }
    }
  }
  return graph;
}

// reaches[a][b]: a path of one step or more leads from a to b.
std::vector<std::vector<bool>> closure(const WaitGraph& graph) {
  const std::size_t count = graph.nodes.size();
  std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count, false));
  for (const WaitGraph::Edge& edge : graph.edges) {
    reaches[edge.from][edge.to] = true;
  }
  for (std::size_t via = 0; via < count; ++via) {
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) {
        reaches[a][b] = reaches[a][b] || (reaches[a][via] && reaches[via][b]);
      }
    }
  }
  return reaches;
}

void mark_cycles(WaitGraph& graph) {
  const auto reaches = closure(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    graph.nodes[i].in_cycle = reaches[i][i];
  }
  for (WaitGraph::Edge& edge : graph.edges) {
    edge.in_cycle = reaches[edge.to][edge.from];
  }
}

// Rings are cycles in which each node has one edge that stays inside. In walking order, from the first node on.
std::vector<std::vector<std::size_t>> rings_of(const WaitGraph& graph) {
  std::vector<std::vector<std::size_t>> inside(graph.nodes.size());
  for (const WaitGraph::Edge& edge : graph.edges) {
    if (edge.in_cycle && edge.from != edge.to) {
      inside[edge.from].push_back(edge.to);
    }
  }
  std::vector<std::vector<std::size_t>> rings;
  std::vector<bool> seen(graph.nodes.size(), false);
  for (std::size_t start = 0; start < graph.nodes.size(); ++start) {
    std::vector<std::size_t> ring;
    std::size_t node = start;
    for (; !seen[node] && inside[node].size() == 1; node = inside[node].front()) {
      seen[node] = true;
      ring.push_back(node);
    }
    if (ring.size() > 1 && node == start) {
      rings.push_back(std::move(ring));
    }
  }
  return rings;
}

void mark_rings(WaitGraph& graph, const std::vector<std::vector<std::size_t>>& rings) {
  for (const std::vector<std::size_t>& ring : rings) {
    for (const std::size_t node : ring) {
      graph.nodes[node].in_ring = true;
    }
  }
  for (WaitGraph::Edge& edge : graph.edges) {
    edge.in_ring = edge.in_cycle && edge.from != edge.to && graph.nodes[edge.from].in_ring;
  }
}

// Puts each node to the left of everything it waits for, except in its own cycle. Distances from the right grow
// until they fit; outside cycles, no path is longer than the number of nodes, so this ends. A ring is two columns wide.
void place_nodes(WaitGraph& graph) {
  const std::vector<std::vector<std::size_t>> rings = rings_of(graph);
  mark_rings(graph, rings);
  std::vector<std::size_t> from_right(graph.nodes.size(), 0);
  for (bool grows = true; grows;) {
    grows = false;
    for (const WaitGraph::Edge& edge : graph.edges) {
      const std::size_t width = graph.nodes[edge.to].in_ring ? 2 : 1;
      const std::size_t least = from_right[edge.to] + (edge.in_cycle ? 0 : width);
      if (from_right[edge.from] < least) {
        from_right[edge.from] = least;
        grows = true;
      }
    }
  }
  std::size_t columns = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    columns = std::max(columns, from_right[i] + (graph.nodes[i].in_ring ? 2 : 1));
  }
  std::vector<std::size_t> used(columns, 0);
  // The first half goes down on the right, after the first node at the top left; the rest comes back up on the left.
  for (const std::vector<std::size_t>& ring : rings) {
    const std::size_t right = columns - 1 - from_right[ring.front()];
    const std::size_t top = std::max(used[right - 1], used[right]);
    const std::size_t down = ring.size() / 2;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      WaitGraph::Node& node = graph.nodes[ring[i]];
      const bool is_right = i > 0 && i <= down;
      node.column = is_right ? right : right - 1;
      node.row = top + (i == 0 ? 0 : is_right ? i - 1 : ring.size() - i);
    }
    used[right - 1] = used[right] = top + std::max<std::size_t>(down, ring.size() - down);
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].in_ring) {
      graph.nodes[i].column = columns - 1 - from_right[i];
      graph.nodes[i].row = used[graph.nodes[i].column]++;
    }
  }
}

}  // namespace

WaitGraph wait_graph(const Report& report) {
  const std::vector<RankState> states = rank_states(report, {}, states_unfolded);
  const Links links = links_between(states, report.world_size);
  std::vector<std::size_t> chosen = by_importance(states, links);
  const std::size_t left_out = chosen.size() - std::min(chosen.size(), nodes_max);
  chosen.resize(chosen.size() - left_out);
  WaitGraph graph = graph_of(states, links, chosen);
  graph.left_out = left_out;
  if (!graph.nodes.empty()) {
    mark_cycles(graph);
    place_nodes(graph);
  }
  return graph;
}

}  // namespace rollcall::viz
