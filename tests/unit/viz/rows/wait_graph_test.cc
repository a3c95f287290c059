#include "viz/rows/wait_graph.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"
#include "tests/unit/viz/sample_reports.h"
#include "viz/html/wait_graph_svg.h"

namespace rollcall::viz::wait_graph_test {

namespace {

Call call_on(std::string op, std::string group) {
  Call call;
  call.op = std::move(op);
  call.group = std::move(group);
  return call;
}

// Rank r waits for the ranks in `targets`, in a barrier of its own.
Report waits(const std::vector<RankSet>& targets, RankSet culprits = {}) {
  std::vector<RankClass> classes;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const RankSet self{static_cast<Rank>(i)};
    const Call call = call_on("barrier", "g" + std::to_string(i));
    classes.push_back(targets[i].empty() ? samples::finished(self, -1)
                                         : samples::waiting(self, call, targets[i]));
  }
  Finding finding;
  finding.culprits = std::move(culprits);
  return samples::report(Deadlock{finding}, static_cast<Rank>(targets.size()), classes);
}

const WaitGraph::Node& node_of(const WaitGraph& graph, Rank rank) {
  for (const WaitGraph::Node& node : graph.nodes) {
    if (node.state.ranks.ranks.contains(rank)) {
      return node;
    }
  }
  FAIL("rank " << rank << " is not drawn");
  return graph.nodes.front();
}

std::string svg(const WaitGraph& graph) {
  Markup out;
  draw_wait_graph(out, graph);
  return out.str();
}

}  // namespace

TEST_CASE("a thousand ranks that wait for one are two nodes and an arrow") {
  const WaitGraph graph = wait_graph(samples::missing_rank(1000));
  REQUIRE(graph.nodes.size() == 2);
  CHECK(graph.nodes[0].state.is_culprit);
  REQUIRE(graph.edges.size() == 1);
  CHECK(graph.edges[0].to == 0);
  CHECK_FALSE(graph.edges[0].in_cycle);
  CHECK(graph.nodes[1].column < graph.nodes[0].column);
}

TEST_CASE("whoever waits stands left of whom it waits for") {
  const WaitGraph graph = wait_graph(waits({{1}, {2}, {}, {0, 2}}));
  CHECK(node_of(graph, 3).column == 0);
  CHECK(node_of(graph, 0).column == 1);
  CHECK(node_of(graph, 1).column == 2);
  CHECK(node_of(graph, 2).column == 3);
}

TEST_CASE("a cycle is marked, and who waits for it is not part of it") {
  const WaitGraph graph = wait_graph(waits({{1}, {2}, {0}, {0}}));
  CHECK(node_of(graph, 0).in_cycle);
  CHECK(node_of(graph, 1).in_cycle);
  CHECK(node_of(graph, 2).in_cycle);
  CHECK_FALSE(node_of(graph, 3).in_cycle);
  CHECK(node_of(graph, 3).column < node_of(graph, 0).column);
}

TEST_CASE("a cycle is drawn around, in walking order, with the groups on its arrows") {
  const WaitGraph graph = wait_graph(waits({{1}, {2}, {3}, {0}}, {0}));
  using Place = std::pair<std::size_t, std::size_t>;  // column and row
  const auto place = [&graph](Rank rank) {
    return Place(node_of(graph, rank).column, node_of(graph, rank).row);
  };
  CHECK(place(0) == Place(0, 0));
  CHECK(place(1) == Place(1, 0));
  CHECK(place(2) == Place(1, 1));
  CHECK(place(3) == Place(0, 1));
  CHECK(std::ranges::all_of(graph.edges, &WaitGraph::Edge::in_ring));
  const std::string picture = svg(graph);
  for (const char* label : {">g0<", ">g1<", ">g2<", ">g3<"}) {
    CHECK_THAT(picture, Contains(label));
  }
  CHECK_THAT(picture, Contains("rank 3 waits for rank 0"));
}

TEST_CASE("cycles of every length have a place for each of their nodes") {
  for (const Rank size : {2, 3, 5, 6, 9}) {
    std::vector<RankSet> targets;
    for (Rank rank = 0; rank < size; ++rank) {
      targets.push_back({(rank + 1) % size});
    }
    std::set<std::pair<std::size_t, std::size_t>> places;
    for (const WaitGraph::Node& node : wait_graph(waits(targets)).nodes) {
      CHECK(node.column < 2);
      places.emplace(node.column, node.row);
    }
    CHECK(places.size() == static_cast<std::size_t>(size));
  }
}

TEST_CASE("a cycle in which somebody waits for two is drawn in a column") {
  const WaitGraph graph = wait_graph(waits({{1, 2}, {0}, {0}}));
  CHECK(node_of(graph, 0).in_cycle);
  CHECK_FALSE(node_of(graph, 0).in_ring);
  CHECK(node_of(graph, 0).column == node_of(graph, 2).column);
}

TEST_CASE("ranks that wait for nobody and for whom nobody waits are not drawn") {
  const WaitGraph graph = wait_graph(waits({{1}, {}, {}}));
  CHECK(graph.nodes.size() == 2);
  CHECK(wait_graph(samples::completed(8)).nodes.empty());
}

TEST_CASE("of a long chain, what is nearest to the culprit is drawn and the rest counted") {
  std::vector<RankSet> targets{{}};
  for (Rank rank = 1; rank < 100; ++rank) {
    targets.push_back({rank - 1});
  }
  const WaitGraph graph = wait_graph(waits(targets, {0}));
  CHECK(graph.nodes.size() == 24);
  CHECK(graph.left_out == 76);
  CHECK(graph.edges.size() == 23);
  CHECK(node_of(graph, 23).column == 0);
}

TEST_CASE("the picture of waits uses neither styles nor scripts, and marks culprits with a sign") {
  const std::string picture = svg(wait_graph(samples::missing_rank(4)));
  CHECK_THAT(picture, Contains("\u2717 rank 0"));
  CHECK_THAT(picture, Contains("ranks 1-3 wait for rank 0"));
  CHECK(picture.find("style") == std::string::npos);
  CHECK(picture.find("script") == std::string::npos);
}

TEST_CASE("a receive from anyone is drawn dashed") {
  Report report = waits({{1}, {}});
  report.ranks[0].call = call_on("recv", "world");
  CHECK_THAT(svg(wait_graph(report)), Contains("stroke-dasharray"));
  report.ranks[0].call->peer = 1;
  CHECK(svg(wait_graph(report)).find("stroke-dasharray") == std::string::npos);
}

}  // namespace rollcall::viz::wait_graph_test
