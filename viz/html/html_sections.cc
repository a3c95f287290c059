#include "viz/html/html_sections.h"

#include <algorithm>

#include <fmt/core.h>

#include "viz/html/html_parts.h"
#include "viz/html/html_table.h"
#include "viz/html/wait_graph_svg.h"
#include "viz/rows/output_groups.h"
#include "viz/rows/phrases.h"
#include "viz/rows/span_text.h"
#include "viz/rows/state_rows.h"
#include "viz/rows/variants_table.h"
#include "viz/rows/verdict_parts.h"
#include "viz/rows/wait_graph.h"

namespace rollcall::viz {

namespace {

using Cell = HtmlTable::Cell;

// How many rows each list has; the JSON report has them all.
constexpr std::size_t states_max = 100;
constexpr std::size_t page_steps_max = 40;
constexpr std::size_t messages_max = 100;
constexpr std::size_t output_max = 200;

// " from x at y" without the blank in front.
std::string origin_of(const Call& call) {
  const std::string origin = call_origin(call);
  return origin.empty() ? origin : origin.substr(1);
}

std::string success_sentence(const Report& report) {
  return fmt::format("{} finished, {} in {} {}", count_phrase(report.world_size, "rank"),
                     count_phrase(report.ops, "call"), duration_phrase(report.simulated_time),
                     report.measured ? "on real ranks" : "of simulated time");
}

}  // namespace

void html_verdict(Markup& out, const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  out.open("header", {{"class", finding != nullptr ? "failure" : "success"}});
  out.open("p", {{"class", "scenario"}}).text(report.scenario).close("p").line();
  out.open("h1").element("span", verdict_word(report.verdict), {{"class", "word"}}).text(": ");
  out.text(finding != nullptr ? finding->headline : success_sentence(report)).close("h1").line();
  if (finding != nullptr) {
    html_paragraph(out, "Cause:", finding->cause);
    html_paragraph(out, "Help:", finding->advice);
    html_paragraph(out, "Repair:", repair_phrase(*finding, run_proof(report.world_size)));
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

void write_tensors(Markup& out, const std::vector<TensorPlace>& places) {
  HtmlTable table;
  table.titles = {"ranks", "value", "at"};
  const std::size_t shown = std::min(places.size(), page_variants_max);
  for (std::size_t i = 0; i < shown; ++i) {
    table.rows.push_back({{.text = ranks_phrase(places[i].ranks), .is_heading = true},
                          {.text = tensor_phrase(places[i])},
                          {.text = places[i].site}});
  }
  table.drop_empty_columns();
  write_table(out, table, "tensors");
  html_counted(out, places.size() - shown, "value");
}

}  // namespace

void html_variants(Markup& out, const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  const std::vector<Variant>* variants = variants_of(report.verdict);
  if (variants != nullptr && !variants->empty()) {
    html_heading(out, "Who called what");
    const bool with_device = std::holds_alternative<DeviceMismatch>(report.verdict);
    html_variants_table(out, *variants, finding->culprits, with_device);
  }
  if (const std::vector<TensorPlace>* tensors = tensors_of(report.verdict); tensors && !tensors->empty()) {
    html_heading(out, "Values");
    write_tensors(out, *tensors);
  }
  if (finding != nullptr && finding->first_divergence) {
    const Divergence& divergence = *finding->first_divergence;
    html_heading(out, "Where it began");
    out.element("p", fmt::format("Collective #{} on {} paired calls that do not belong together.",
                                 divergence.seq, divergence.group));
    html_variants_table(out, divergence.variants, finding->culprits, false);
  }
}

namespace {

std::string inputs_text(const RankState& state) {
  return inputs_phrase(state.fewest_inputs, state.inputs_max);
}

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
          {.text = inputs_text(state)},
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
  const std::vector<RankState> states = rank_states(report, {}, states_max);
  HtmlTable table;
  table.titles = {"ranks",     "state",  "after",     "blocked in",
                  "other end", "called", "waits for", "last completed"};
  for (std::size_t i = 0; i < std::min(states.size(), states_max); ++i) {
    table.rows.push_back(state_cells(states[i]));
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
    const std::size_t shown = std::min(finding->chain.size(), page_steps_max);
    for (std::size_t i = 0; i < shown; ++i) {
      out.element("li", finding->chain[i]).line();
    }
    out.close("ol").line();
    html_counted(out, finding->chain.size() - shown, "step");
  }
}

void html_messages(Markup& out, const Report& report) {
  HtmlTable table;
  table.titles = {"rank", "message", "called"};
  std::size_t hidden = 0;
  for (const Span& span : report.timeline.spans()) {
    if (span.kind != Span::Kind::message || span.end != Span::open) {
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
  if (table.rows.empty()) {
    return;
  }
  table.drop_empty_columns();
  html_heading(out, "Messages that never completed");
  write_table(out, table, "messages");
  html_counted(out, hidden, "message");
}

void html_output(Markup& out, const Report& report) {
  const std::vector<OutputGroup> groups = group_output(report.output);
  if (groups.empty()) {
    return;
  }
  HtmlTable table;
  table.titles = {"ranks", "printed"};
  for (std::size_t i = 0; i < std::min(groups.size(), output_max); ++i) {
    table.rows.push_back(
        {{.text = ranks_phrase(groups[i].ranks), .is_heading = true},
         {.text = groups[i].text, .note = groups[i].warning ? "warning" : "", .is_code = true}});
  }
  html_heading(out, "What the ranks printed");
  write_table(out, table, "output");
  html_counted(out, groups.size() - table.rows.size(), "line");
}

void html_run(Markup& out, const Report& report) {
  html_heading(out, "The run");
  if (!report.replay.empty()) {
    out.open("p").element("b", "Replay:").text(" ").element("code", report.replay).close("p").line();
  }
  out.element(
      "p", fmt::format("World size {}, backend {}{}, seed {}, {}, {} {}.", report.world_size, report.backend,
                       torch_phrase(report.torch), report.seed, count_phrase(report.ops, "call"),
                       duration_phrase(report.simulated_time), report.measured ? "measured" : "simulated"));
  out.element("p", report.exhaustive ? "Nothing depends on timing: every schedule gives this verdict."
                                     : fmt::format("Seen in {}; the search was not exhaustive.",
                                                   count_phrase(report.schedules, "schedule")))
      .line();
}

}  // namespace rollcall::viz
