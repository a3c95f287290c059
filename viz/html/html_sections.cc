#include "viz/html/html_sections.h"

#include <algorithm>
#include <ranges>

#include <fmt/core.h>

#include "viz/html/html_parts.h"
#include "viz/html/html_table.h"
#include "viz/html/wait_graph_svg.h"
#include "viz/rows/message_pairs.h"
#include "viz/rows/output_groups.h"
#include "viz/rows/phrases.h"
#include "viz/rows/source_rows.h"
#include "viz/rows/span_text.h"
#include "viz/rows/state_rows.h"
#include "viz/rows/variants_table.h"
#include "viz/rows/verdict_parts.h"
#include "viz/rows/wait_graph.h"

namespace rollcall::viz {

namespace {

using Cell = HtmlTable::Cell;

// The number of rows of each list; the JSON report has them all.
constexpr std::size_t page_states_max = 100;
constexpr std::size_t page_steps_max = 40;
constexpr std::size_t messages_max = 100;
constexpr std::size_t pairs_max = 8;
constexpr std::size_t page_output_max = 200;

// " from x at y" without the leading blank.
std::string origin_of(const Call& call) {
  const std::string origin = call_origin(call);
  return origin.empty() ? origin : origin.substr(1);
}

}  // namespace

void html_excerpts(Markup& out, const Report& report) {
  for (const SourceLine& line : report.sources) {
    const Excerpt excerpt = excerpt_of(line);
    out.open("div", {{"class", "excerpt"}})
        .element("small", path_of_site(report.sources, line.site))
        .open("pre", {{"tabindex", "0"}});
    out.open("code").text(fmt::format("{:>4}  {}", line.line, excerpt.text));
    if (excerpt.mark >= 0) {
      out.line().text(std::string(static_cast<std::size_t>(excerpt.mark) + 6, ' ')).element("b", "^");
    }
    out.close("code").close("pre").close("div").line();
  }
}

void html_verdict(Markup& out, const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  out.open("header", {{"class", finding != nullptr ? "failure" : "success"}});
  out.open("p", {{"class", "scenario"}}).text(report.scenario).close("p").line();
  out.open("h1").element("span", verdict_word(report.verdict), {{"class", "word"}}).text(": ");
  out.text(finding != nullptr ? finding->headline : success_phrase(report)).close("h1").line();
  html_excerpts(out, report);
  if (finding != nullptr) {
    html_paragraph(out, "Cause:", finding->cause);
    html_paragraph(out, "Help:", finding->advice);
    html_paragraph(out, "Repair:", repair_phrase(*finding, run_proof(report)));
    if (finding->tie) {
      html_paragraph(out, "Tie:", tie_phrase(*finding));
    } else {
      html_paragraph(out, "Likelier:", finding->suspicion);
    }
    html_paragraph(out, "Schedules:", outcomes_phrase(report));
    if (!finding->on_backend.empty()) {
      html_paragraph(out, fmt::format("On {}:", report.backend), finding->on_backend);
    }
  }
  if (report.expected) {
    html_paragraph(out, "Result:", *report.expected ? "as expected" : "not as expected",
                   *report.expected ? "" : "differs");
  }
  for (const std::string& sentence : report.unmet) {
    out.element("p", "- " + sentence).line();
  }
  out.close("header").line();
}

namespace {

void write_splits(Markup& out, const std::vector<SplitPair>& pairs) {
  HtmlTable table;
  table.titles = {"from", "to", "sends", "expects"};
  for (const SplitPair& pair : pairs | std::views::take(page_variants_max)) {
    table.rows.push_back({{.text = fmt::format("rank {}", pair.sender), .is_heading = true},
                          {.text = fmt::format("rank {}", pair.receiver)},
                          {.text = count_phrase(pair.sent, "element"), .look = "differs"},
                          {.text = count_phrase(pair.expected, "element"), .look = "differs"}});
  }
  write_table(out, table, "splits");
  html_counted(out, pairs.size() - table.rows.size(), "pair");
}

void write_tensors(Markup& out, const std::vector<TensorPlace>& places, FindingKind kind) {
  HtmlTable table;
  table.titles = {"ranks", "value", "at"};
  for (const TensorPlace& place : places | std::views::take(page_variants_max)) {
    table.rows.push_back({{.text = ranks_phrase(place.ranks), .is_heading = true},
                          {.text = tensor_phrase(place, kind)},
                          {.text = place.site}});
  }
  table.drop_empty_columns();
  write_table(out, table, "tensors");
  html_counted(out, places.size() - table.rows.size(), "value");
}

}  // namespace

void html_variants(Markup& out, const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  const std::vector<Variant>* variants = variants_of(report.verdict);
  if (variants != nullptr && !variants->empty()) {
    html_heading(out, "Who called what");
    html_variants_table(out, *variants, finding->culprits, variants_style(report.verdict));
  }
  if (const auto* mismatch = std::get_if<Mismatch>(&report.verdict); mismatch && !mismatch->splits.empty()) {
    html_heading(out, "Who expects what from whom");
    write_splits(out, mismatch->splits);
  }
  if (const std::vector<TensorPlace>* tensors = tensors_of(report.verdict); tensors && !tensors->empty()) {
    html_heading(out, tensors_title(finding->kind));
    write_tensors(out, *tensors, finding->kind);
  }
  if (finding != nullptr && finding->first_divergence) {
    const Divergence& divergence = *finding->first_divergence;
    html_heading(out, "Where it began");
    out.element("p", fmt::format("Collective #{} on {} paired calls that do not belong together.",
                                 divergence.seq, divergence.group));
    html_variants_table(out, divergence.variants, finding->culprits);
  }
}

namespace {

// The other end of a message, "rank 5, tag 7".
std::string other_end(const std::optional<Call>& call) {
  if (!call || (call->op != "send" && call->op != "recv")) {
    return {};
  }
  const std::string peer = call->peer < 0 ? "anyone" : fmt::format("rank {}", call->peer);
  return call->tag == 0 ? peer : fmt::format("{}, tag {}", peer, call->tag);
}

std::vector<Cell> state_cells(const RankState& state) {
  const RankClass& ranks = state.ranks;
  return {ranks_cell(ranks.ranks, state.is_culprit),
          {.text = std::string(to_string(ranks.state)), .note = ranks.exception},
          {.text = inputs_phrase(state.fewest_inputs, state.inputs_max)},
          {.text = ranks.call ? call_with_arguments(*ranks.call) : "", .is_code = true},
          {.text = other_end(ranks.call)},
          {.text = ranks.call ? origin_of(*ranks.call) : ""},
          {.text = ranks.waits_for.empty() ? "" : ranks_phrase(ranks.waits_for)},
          {.text = ranks.last_completed ? call_phrase(*ranks.last_completed) : "", .is_code = true}};
}

}  // namespace

void html_states(Markup& out, const Report& report) {
  html_heading(out, "State of every rank");
  html_states_table(out, report);
}

void html_states_table(Markup& out, const Report& report) {
  const std::vector<RankState> states = rank_states(report, {}, page_states_max);
  HtmlTable table;
  table.titles = {"ranks",     "state",  "after",     "blocked in",
                  "other end", "called", "waits for", "last completed"};
  for (const RankState& state : states | std::views::take(page_states_max)) {
    table.rows.push_back(state_cells(state));
  }
  table.drop_empty_columns();
  write_table(out, table, "states");
  html_counted(out, states.size() - table.rows.size(), "state");
}

namespace {

void legend(Markup& out, const WaitGraph& graph) {
  std::string text = "Arrows lead from waiting ranks to the ranks they wait for.";
  if (std::ranges::any_of(graph.edges, &WaitGraph::Edge::in_cycle)) {
    text += " Thick arrows: a cycle; no rank outside it can resolve it.";
  }
  if (std::ranges::any_of(graph.edges, &WaitGraph::Edge::any)) {
    text += " Dashed arrows: any one of these ranks would be enough.";
  }
  out.element("p", text, {{"class", "note"}}).line();
}

}  // namespace

void html_wait_graph(Markup& out, const Report& report) {
  const WaitGraph graph = wait_graph(report);
  const Finding* finding = finding_of(report.verdict);
  const bool has_chain = finding != nullptr && !finding->chain.empty();
  if (graph.edges.empty() && !has_chain) {
    return;
  }
  html_heading(out, "Who waits for whom");
  if (!graph.edges.empty()) {
    out.open("div", {{"class", "scroll"}});
    draw_wait_graph(out, graph);
    out.close("div").line();
    html_counted(out, graph.left_out, "state");
    legend(out, graph);
  }
  if (has_chain) {
    out.open("ol").line();
    for (const std::string& step : finding->chain | std::views::take(page_steps_max)) {
      out.element("li", step).line();
    }
    out.close("ol").line();
    html_counted(out, finding->chain.size() - std::min(finding->chain.size(), page_steps_max), "step");
  }
}

namespace {

// One rank's end of a message, or that it is missing.
Cell message_cell(const CallSequences::Cell& cell, std::int64_t number, bool is_culprit) {
  if (cell.differs) {
    return is_culprit ? Cell{.text = "\u2260 nothing", .look = "differs"} : Cell{.text = "nothing yet"};
  }
  const std::string origin = cell.origin.starts_with(" ") ? cell.origin.substr(1) + "; " : cell.origin;
  return {.text = cell.call,
          .note = fmt::format("{}#{} of its own calls{}", origin, number,
                              cell.never_returned ? "; never completed" : ""),
          .look = cell.never_returned ? "open" : ""};
}

// True for open messages whose other end is unknown.
bool is_from_anyone(const Span& span) {
  return span.kind == Span::Kind::message && span.end == Span::open && span.peer < 0;
}

void write_open_receives(Markup& out, const Report& report) {
  HtmlTable table;
  table.titles = {"rank", "message", "called"};
  std::size_t hidden = 0;
  for (const Span& span : report.timeline.spans()) {
    if (!is_from_anyone(span)) {
      continue;
    }
    if (table.rows.size() == messages_max) {
      ++hidden;
      continue;
    }
    const std::string origin = origin_text(span, report.timeline);
    table.rows.push_back({{.text = fmt::format("rank {}", span.rank), .is_heading = true},
                          {.text = call_text(span, report.timeline), .is_code = true},
                          {.text = origin.empty() ? origin : origin.substr(1)}});
  }
  if (!table.rows.empty()) {
    table.drop_empty_columns();
    write_table(out, table, "messages");
    html_counted(out, hidden, "message");
  }
}

}  // namespace

void html_messages(Markup& out, const Report& report) {
  const std::vector<MessagePairs> pairs = message_pairs(report);
  if (pairs.empty() && std::ranges::none_of(report.timeline.spans(), is_from_anyone)) {
    return;
  }
  const Finding* finding = finding_of(report.verdict);
  const auto is_culprit = [finding](Rank rank) {
    return finding != nullptr && finding->culprits.contains(rank);
  };
  html_heading(out, "Messages that never completed");
  for (const MessagePairs& each : pairs | std::views::take(pairs_max)) {
    HtmlTable table;
    table.titles = {"message", fmt::format("rank {} sends to rank {}", each.sender, each.receiver),
                    fmt::format("rank {} receives from rank {}", each.receiver, each.sender)};
    for (const MessagePairs::Row& row : each.rows) {
      table.rows.push_back({{.text = fmt::format("#{}", row.number), .is_heading = true},
                            message_cell(row.sent, row.sent_as, is_culprit(each.sender)),
                            message_cell(row.received, row.received_as, is_culprit(each.receiver))});
    }
    write_table(out, table, "sequences");
    html_counted(out, each.later, "message");
  }
  html_counted(out, pairs.size() - std::min(pairs.size(), pairs_max), "pair");
  write_open_receives(out, report);
}

void html_output(Markup& out, const Report& report) {
  const std::vector<OutputGroup> groups = group_output(report.output);
  if (groups.empty()) {
    return;
  }
  HtmlTable table;
  table.titles = {"ranks", "printed"};
  for (const OutputGroup& group : groups | std::views::take(page_output_max)) {
    table.rows.push_back({{.text = ranks_phrase(group.ranks), .is_heading = true},
                          {.text = group.text, .note = group.warning ? "warning" : "", .is_code = true}});
  }
  html_heading(out, "What the ranks printed");
  write_table(out, table, "output");
  html_counted(out, groups.size() - table.rows.size(), "line");
}

namespace {

std::string as_sentence(std::string phrase) {
  phrase.front() = static_cast<char>(phrase.front() - 'a' + 'A');  // of an English word
  return phrase + ".";
}

}  // namespace

void html_run(Markup& out, const Report& report) {
  html_heading(out, "The run");
  if (!report.replay.empty()) {
    out.open("p")
        .element("b", "Replay:")
        .text(" ")
        .element("code", report.replay, {{"class", "copy"}})
        .close("p")
        .line();
  }
  out.element("p", as_sentence(run_phrase(report)));
  out.element("p", as_sentence(timing_phrase(report))).line();
}

}  // namespace rollcall::viz
