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
constexpr int ring_gap = 44;  // between rows, if labeled arrows lead down and up
constexpr int margin = 14;
constexpr int bend_width = 44;  // minimum, of a curve between two nodes of one column
constexpr int bend_max = 120;   // maximum; a curve reaches three quarters as far
constexpr int arrow_length = 9;
constexpr int shrinks_max =
    1100;  // a picture no wider than this may be drawn smaller, where there is less room

constexpr std::size_t line_length_max = 32;  // characters that fit in a node
constexpr std::size_t edge_label_max = 15;   // characters that fit between two columns

constexpr std::string_view cycle_color = "#c62828";
constexpr std::string_view plain_color = "#6e7781";  // readable on white and on black

struct Point {
  int x = 0;
  int y = 0;
};

// All rows of a graph have the same height.
class Layout {
 public:
  explicit Layout(const WaitGraph& graph)
      : gap_(std::ranges::any_of(graph.edges, &WaitGraph::Edge::in_ring) ? ring_gap : row_gap) {}

  Point left_of(const WaitGraph::Node& node) const {
    return {margin + static_cast<int>(node.column) * (node_width + column_gap),
            margin + static_cast<int>(node.row) * (node_height + gap_) + node_height / 2};
  }
  Point right_of(const WaitGraph::Node& node) const {
    const Point left = left_of(node);
    return {left.x + node_width, left.y};
  }
  Point middle_of(const WaitGraph::Node& node) const {
    const Point left = left_of(node);
    return {left.x + node_width / 2, left.y};
  }

 private:
  int gap_;
};

Point shifted(Point point, int down) { return {point.x, point.y + down}; }

std::string state_line(const RankState& state) {
  const RankClass& ranks = state.ranks;
  if (ranks.state == RankClass::State::waiting && ranks.call) {
    const bool is_numbered = ranks.call->key.empty();  // the arrow names the group
    return is_numbered ? fmt::format("waits in {} #{}", ranks.call->op, ranks.call->seq)
                       : fmt::format("waits in {}", call_phrase(*ranks.call));
  }
  return state_phrase(ranks, inputs_phrase(state.fewest_inputs, state.inputs_max));
}

void draw_line(Markup& out, std::string_view text, Point at, std::string_view weight,
               std::string_view anchor = "") {
  out.open("text", {{"x", fmt::format("{}", at.x)},
                    {"y", fmt::format("{}", at.y)},
                    {"font-size", anchor.empty() ? "13" : "12"},
                    {"font-family", "sans-serif"},
                    {"font-weight", weight},
                    {"text-anchor", anchor},
                    {"fill", "#1f2328"}});
  out.short_text(text, line_length_max).close("text");
}

void draw_node(Markup& out, const Layout& layout, const WaitGraph::Node& node) {
  const Point left = layout.left_of(node);
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

int arrow_base(Point tip, bool to_right) { return tip.x + (to_right ? -arrow_length : arrow_length); }

// An arrow head that points to the right or to the left.
std::string arrow_head(Point tip, bool to_right) {
  const int base = arrow_base(tip, to_right);
  return fmt::format("M{} {}L{} {}L{} {}Z", tip.x, tip.y, base, tip.y - 5, base, tip.y + 5);
}

struct Curve {
  std::string line;
  std::string head;
  Point label{};  // where its label has room
};

Point between(Point a, Point b) { return {(a.x + b.x) / 2, (a.y + b.y) / 2}; }

// From one column to another.
Curve curve_across(Point begin, Point end, bool to_right) {
  const int half = (end.x - begin.x) / 2;
  return {fmt::format("M{} {}C{} {} {} {} {} {}", begin.x, begin.y, begin.x + half, begin.y, end.x - half,
                      end.y, arrow_base(end, to_right), end.y),
          arrow_head(end, to_right), shifted(between(begin, end), to_right ? -6 : 16)};
}

// Out of a node and back into one in the same column, on the side given by `sign`.
Curve curve_beside(Point begin, Point end, int sign) {
  const int reach = sign * std::min(bend_max, bend_width + std::abs(end.y - begin.y) / 6);
  return {fmt::format("M{} {}C{} {} {} {} {} {}", begin.x, begin.y, begin.x + reach, begin.y, end.x + reach,
                      end.y, end.x + sign * arrow_length, end.y),
          arrow_head(end, sign < 0), shifted({begin.x + reach / 2, (begin.y + end.y) / 2}, 4)};
}

// Straight down, or up.
Curve line_upright(Point begin, Point end) {
  const int sign = end.y > begin.y ? 1 : -1;
  const int base = end.y - sign * arrow_length;
  return {fmt::format("M{} {}L{} {}", begin.x, begin.y, end.x, base),
          fmt::format("M{} {}L{} {}L{} {}Z", end.x, end.y, end.x - 5, base, end.x + 5, base),
          shifted(between(begin, end), 4)};
}

// Straight down or up first, then to the side.
Curve curve_around(Point begin, Point end, bool to_right) {
  return {
      fmt::format("M{} {}Q{} {} {} {}", begin.x, begin.y, begin.x, end.y, arrow_base(end, to_right), end.y),
      arrow_head(end, to_right), shifted(between(begin, end), 4)};
}

// Two nodes that wait for each other.
bool is_pair(const WaitGraph& graph, const WaitGraph::Edge& edge) {
  return std::ranges::any_of(graph.edges, [&edge](const WaitGraph::Edge& other) {
    return other.from == edge.to && other.to == edge.from;
  });
}

bool goes_up(const WaitGraph& graph, const WaitGraph::Edge& edge) {
  const WaitGraph::Node& from = graph.nodes[edge.from];
  const WaitGraph::Node& to = graph.nodes[edge.to];
  return !edge.in_ring && from.column == to.column && to.row < from.row;
}

// Within a column, edges down are on the right and edges up on the left, so that the two
// directions of a pair do not meet.
Curve curve_of(const WaitGraph& graph, const Layout& layout, const WaitGraph::Edge& edge) {
  const WaitGraph::Node& from = graph.nodes[edge.from];
  const WaitGraph::Node& to = graph.nodes[edge.to];
  if (edge.in_ring && from.column != to.column && from.row != to.row) {
    const bool goes_down = to.row > from.row;
    const bool to_right = to.column > from.column;
    return curve_around(shifted(layout.middle_of(from), goes_down ? node_height / 2 : -node_height / 2),
                        to_right ? layout.left_of(to) : layout.right_of(to), to_right);
  }
  if (from.column != to.column) {
    // The two directions of a pair do not meet.
    const bool to_right = to.column > from.column;
    const int aside = edge.in_ring && from.row == to.row && is_pair(graph, edge) ? (to_right ? -12 : 12) : 0;
    const Point begin = to_right ? layout.right_of(from) : layout.left_of(from);
    const Point end = to_right ? layout.left_of(to) : layout.right_of(to);
    return curve_across(shifted(begin, aside), shifted(end, aside), to_right);
  }
  if (edge.in_ring) {
    const int half = to.row > from.row ? node_height / 2 : -node_height / 2;
    return line_upright(shifted(layout.middle_of(from), half), shifted(layout.middle_of(to), -half));
  }
  if (goes_up(graph, edge)) {
    return curve_beside(shifted(layout.left_of(from), -8), shifted(layout.left_of(to), 8), -1);
  }
  const int out_at = edge.from == edge.to ? -12 : 8;
  return curve_beside(shifted(layout.right_of(from), out_at), shifted(layout.right_of(to), -out_at), 1);
}

std::string edge_phrase(const WaitGraph& graph, const WaitGraph::Edge& edge) {
  const RankSet& from = graph.nodes[edge.from].state.ranks.ranks;
  return fmt::format("{} {} for {}{}", ranks_phrase(from), from.size() == 1 ? "waits" : "wait",
                     edge.any ? "any of " : "", ranks_phrase(graph.nodes[edge.to].state.ranks.ranks));
}

void draw_edge(Markup& out, const WaitGraph& graph, const Layout& layout, const WaitGraph::Edge& edge) {
  const Curve curve = curve_of(graph, layout, edge);
  const std::string_view color = edge.in_cycle ? cycle_color : plain_color;
  out.open("g", {{"class", edge.in_cycle ? "edge cycle" : "edge"}});
  out.open("title").short_text(edge_phrase(graph, edge), 300).close("title");
  out.single("path", {{"d", curve.line},
                      {"fill", "none"},
                      {"stroke", color},
                      {"stroke-width", edge.in_cycle ? "3" : "1.5"},
                      {"stroke-dasharray", edge.any ? "6 4" : ""}});
  out.single("path", {{"d", curve.head}, {"fill", color}});
  if (!edge.label.empty()) {
    draw_line(out, clipped(edge.label, edge_label_max), curve.label, "", "middle");
  }
  out.close("g").line();
}

// A description of the picture for readers who do not see it.
std::string picture_phrase(const WaitGraph& graph) {
  constexpr std::size_t said_max = 20;
  std::string text = "Who waits for whom";
  for (std::size_t i = 0; i < std::min(graph.edges.size(), said_max); ++i) {
    text += fmt::format("{} {}", i == 0 ? ":" : ";", edge_phrase(graph, graph.edges[i]));
  }
  return graph.edges.size() > said_max
             ? text + fmt::format("; and {} more waits", graph.edges.size() - said_max)
             : text;
}

}  // namespace

void draw_wait_graph(Markup& out, const WaitGraph& graph) {
  const Layout layout(graph);
  const bool has_bends = std::ranges::any_of(graph.edges, [&graph](const WaitGraph::Edge& edge) {
    return !edge.in_ring && graph.nodes[edge.from].column == graph.nodes[edge.to].column;
  });
  const int beside = has_bends ? bend_max * 3 / 4 + margin : margin;
  const bool has_left = std::ranges::any_of(
      graph.edges, [&graph](const WaitGraph::Edge& edge) { return goes_up(graph, edge); });
  const int left = has_left ? -beside : 0;
  Point size;
  for (const WaitGraph::Node& node : graph.nodes) {
    const Point right = layout.right_of(node);
    size.x = std::max(size.x, right.x + beside - left);
    size.y = std::max(size.y, right.y + node_height / 2 + margin);
  }
  out.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                   {"width", fmt::format("{}", size.x)},
                   {"height", fmt::format("{}", size.y)},
                   {"viewBox", fmt::format("{} 0 {} {}", left, size.x, size.y)},
                   {"role", "img"},
                   {"class", size.x > shrinks_max ? "waits wide" : "waits"},
                   {"aria-label", picture_phrase(graph)}});
  for (const WaitGraph::Edge& edge : graph.edges) {
    draw_edge(out, graph, layout, edge);
  }
  for (const WaitGraph::Node& node : graph.nodes) {
    draw_node(out, layout, node);
  }
  out.close("svg").line();
}

}  // namespace rollcall::viz
