#include "viz/html/wait_graph_svg.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "viz/rows/phrases.h"

namespace rollcall::viz {

namespace {

// In pixels.
constexpr int node_width = 264;
constexpr int node_height = 48;
constexpr int column_gap = 110;
constexpr int row_gap = 22;
constexpr int margin = 14;
constexpr int bend_width = 44;  // of a curve between two nodes of one column, at least
constexpr int bend_max = 120;   // and at most; a curve reaches three quarters as far
constexpr int arrow_length = 9;

constexpr std::size_t line_length_max = 32;  // characters that fit into a node

constexpr std::string_view cycle_color = "#c62828";
constexpr std::string_view plain_color = "#6e7781";  // readable on white and on black

struct Point {
  int x = 0;
  int y = 0;
};

Point left_of(const WaitGraph::Node& node) {
  return {margin + static_cast<int>(node.column) * (node_width + column_gap),
          margin + static_cast<int>(node.row) * (node_height + row_gap) + node_height / 2};
}

Point right_of(const WaitGraph::Node& node) {
  const Point left = left_of(node);
  return {left.x + node_width, left.y};
}

Point shifted(Point point, int down) { return {point.x, point.y + down}; }

std::string state_line(const RankState& state) {
  const RankClass& ranks = state.ranks;
  if (ranks.state == RankClass::State::waiting && ranks.call) {
    return fmt::format("waits in {}", call_phrase(*ranks.call));
  }
  return state_phrase(ranks, inputs_phrase(state.fewest_inputs, state.inputs_max));
}

void draw_line(Markup& out, std::string_view text, Point at, std::string_view weight) {
  out.open("text", {{"x", fmt::format("{}", at.x)},
                    {"y", fmt::format("{}", at.y)},
                    {"font-size", "13"},
                    {"font-family", "sans-serif"},
                    {"font-weight", weight},
                    {"fill", "#1f2328"}});
  out.short_text(text, line_length_max).close("text");
}

void draw_node(Markup& out, const WaitGraph::Node& node) {
  const Point left = left_of(node);
  const int top = left.y - node_height / 2;
  const bool is_culprit = node.state.is_culprit;
  out.open("g", {{"class", is_culprit ? "node culprit" : "node"}});
  out.open("title").short_text(ranks_phrase(node.state.ranks.ranks) + ": " + state_line(node.state), 300);
  out.close("title");
  out.single("rect", {{"x", fmt::format("{}", left.x)},
                      {"y", fmt::format("{}", top)},
                      {"width", fmt::format("{}", node_width)},
                      {"height", fmt::format("{}", node_height)},
                      {"rx", "5"},
                      {"fill", is_culprit ? "#fdecea" : "#f6f8fa"},
                      {"stroke", is_culprit || node.in_cycle ? cycle_color : plain_color},
                      {"stroke-width", is_culprit ? "3" : "1"}});
  const std::string mark = is_culprit ? "\u2717 " : "";
  draw_line(out, mark + ranks_phrase(node.state.ranks.ranks), {left.x + 10, top + 19}, "bold");
  draw_line(out, state_line(node.state), {left.x + 10, top + 38}, "");
  out.close("g").line();
}

// A head that points to the right, or to the left.
std::string arrow_head(Point tip, bool to_right) {
  const int base = tip.x + (to_right ? -arrow_length : arrow_length);
  return fmt::format("M{} {}L{} {}L{} {}Z", tip.x, tip.y, base, tip.y - 5, base, tip.y + 5);
}

struct Curve {
  std::string line;
  std::string head;
};

// From one side of the picture to the next column.
Curve curve_across(Point begin, Point end) {
  const int half = (end.x - begin.x) / 2;
  return {fmt::format("M{} {}C{} {} {} {} {} {}", begin.x, begin.y, begin.x + half, begin.y, end.x - half,
                      end.y, end.x - arrow_length, end.y),
          arrow_head(end, true)};
}

// Out of a node and back into one of the same column, on the side that `sign` says.
Curve curve_beside(Point begin, Point end, int sign) {
  const int reach = sign * std::min(bend_max, bend_width + std::abs(end.y - begin.y) / 6);
  return {fmt::format("M{} {}C{} {} {} {} {} {}", begin.x, begin.y, begin.x + reach, begin.y, end.x + reach,
                      end.y, end.x + sign * arrow_length, end.y),
          arrow_head(end, sign < 0)};
}

bool goes_up(const WaitGraph& graph, const WaitGraph::Edge& edge) {
  const WaitGraph::Node& from = graph.nodes[edge.from];
  const WaitGraph::Node& to = graph.nodes[edge.to];
  return from.column == to.column && to.row < from.row;
}

// Within a column, what goes down does so on the right and what goes up on the left, so that the two
// directions of a pair do not meet.
Curve curve_of(const WaitGraph& graph, const WaitGraph::Edge& edge) {
  const WaitGraph::Node& from = graph.nodes[edge.from];
  const WaitGraph::Node& to = graph.nodes[edge.to];
  if (from.column != to.column) {
    return to.column > from.column ? curve_across(right_of(from), left_of(to))
                                   : curve_across(left_of(from), right_of(to));
  }
  if (goes_up(graph, edge)) {
    return curve_beside(shifted(left_of(from), -8), shifted(left_of(to), 8), -1);
  }
  const int out_at = edge.from == edge.to ? -12 : 8;
  return curve_beside(shifted(right_of(from), out_at), shifted(right_of(to), -out_at), 1);
}

void draw_edge(Markup& out, const WaitGraph& graph, const WaitGraph::Edge& edge) {
  const WaitGraph::Node& from = graph.nodes[edge.from];
  const WaitGraph::Node& to = graph.nodes[edge.to];
  const Curve curve = curve_of(graph, edge);
  const std::string_view color = edge.in_cycle ? cycle_color : plain_color;
  out.open("g", {{"class", edge.in_cycle ? "edge cycle" : "edge"}});
  out.open("title").short_text(fmt::format("{} wait for {}{}", ranks_phrase(from.state.ranks.ranks),
                                           edge.any ? "any of " : "", ranks_phrase(to.state.ranks.ranks)),
                               300);
  out.close("title");
  out.single("path", {{"d", curve.line},
                      {"fill", "none"},
                      {"stroke", color},
                      {"stroke-width", edge.in_cycle ? "3" : "1.5"},
                      {"stroke-dasharray", edge.any ? "6 4" : ""}});
  out.single("path", {{"d", curve.head}, {"fill", color}});
  out.close("g").line();
}

}  // namespace

void draw_wait_graph(Markup& out, const WaitGraph& graph) {
  constexpr int beside = bend_max * 3 / 4 + margin;
  const bool has_left = std::ranges::any_of(
      graph.edges, [&graph](const WaitGraph::Edge& edge) { return goes_up(graph, edge); });
  const int left = has_left ? -beside : 0;
  Point size;
  for (const WaitGraph::Node& node : graph.nodes) {
    size.x = std::max(size.x, right_of(node).x + beside - left);
    size.y = std::max(size.y, right_of(node).y + node_height / 2 + margin);
  }
  out.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                   {"width", fmt::format("{}", size.x)},
                   {"height", fmt::format("{}", size.y)},
                   {"viewBox", fmt::format("{} 0 {} {}", left, size.x, size.y)},
                   {"role", "img"},
                   {"aria-label", "wait-for graph"}});
  for (const WaitGraph::Edge& edge : graph.edges) {
    draw_edge(out, graph, edge);
  }
  for (const WaitGraph::Node& node : graph.nodes) {
    draw_node(out, node);
  }
  out.close("svg").line();
}

}  // namespace rollcall::viz
