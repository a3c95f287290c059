#include "viz/html/html_comparison.h"

#include <algorithm>

#include <fmt/format.h>

#include "viz/html/html_calls.h"
#include "viz/html/html_page.h"
#include "viz/html/html_parts.h"
#include "viz/html/html_sections.h"
#include "viz/html/html_table.h"
#include "viz/rows/merged_runs.h"
#include "viz/rows/phrases.h"

namespace rollcall::viz {

namespace {

using Judgement = ComparedFact::Judgement;

std::string_view text_of(Judgement judgement) {
  return judgement == Judgement::same      ? "= same"
         : judgement == Judgement::differs ? "\u2260 differs"
                                           : "? cannot be judged";
}

std::int64_t count_of(const Comparison& comparison, Judgement judgement) {
  return std::ranges::count(comparison.facts, judgement, &ComparedFact::judgement);
}

std::string summary_of(const Comparison& comparison) {
  std::vector<std::string> differ;
  for (const ComparedFact& fact : comparison.facts) {
    if (fact.judgement == Judgement::differs) {
      differ.push_back(fact.about);
    }
  }
  const std::string pair = fmt::format("{} and {}", comparison.first.name, comparison.second.name);
  return differ.empty() ? fmt::format("{} agree in everything that can be compared", pair)
                        : fmt::format("{} differ in {}", pair, fmt::join(differ, ", "));
}

std::string sentence_of(const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  return finding != nullptr ? finding->headline
                            : fmt::format("{} finished", count_phrase(report.world_size, "rank"));
}

// Both verdicts, side by side.
void verdicts(Markup& out, const Comparison& comparison) {
  out.open("table", {{"class", "pair"}, {"border", "1"}, {"cellpadding", "8"}, {"cellspacing", "0"}});
  out.open("tbody").open("tr").line();
  for (const ComparedRun& run : {comparison.first, comparison.second}) {
    if (run.report == nullptr) {
      out.open("td", {{"valign", "top"}, {"width", "50%"}}).element("small", run.name);
      out.element("p", run.absence).close("td").line();
      continue;
    }
    const Finding* finding = finding_of(run.report->verdict);
    out.open("td",
             {{"class", finding != nullptr ? "failure" : "success"}, {"valign", "top"}, {"width", "50%"}});
    out.element("small", run.name).single("br", {});
    out.open("b").element("span", verdict_word(run.report->verdict), {{"class", "word"}}).text(": ");
    out.text(sentence_of(*run.report)).close("b");
    if (finding != nullptr && !finding->cause.empty()) {
      out.element("p", finding->cause);
    }
    out.close("td").line();
  }
  out.close("tr").close("tbody").close("table").line();
}

const std::string& scenario_of(const Comparison& comparison) {
  const Report* second = comparison.second.report;
  return second != nullptr ? second->scenario : comparison.first.report->scenario;
}

void header(Markup& out, const Comparison& comparison) {
  const bool differs = count_of(comparison, Judgement::differs) > 0;
  out.open("header", {{"class", differs ? "warning" : "success"}});
  out.open("p", {{"class", "scenario"}}).text(scenario_of(comparison)).close("p").line();
  out.element("h1", summary_of(comparison)).line();
  out.close("header").line();
}

void facts(Markup& out, const Comparison& comparison) {
  HtmlTable table;
  table.titles = {"", "", comparison.first.name, comparison.second.name, ""};
  for (const ComparedFact& fact : comparison.facts) {
    const bool differs = fact.judgement == Judgement::differs;
    const std::string look = differs ? "differs" : "";
    table.rows.push_back({{.text = fact.about, .is_heading = true},
                          {.text = std::string(text_of(fact.judgement)), .look = look},
                          {.text = fact.first},
                          {.text = fact.first == fact.second ? "" : fact.second},
                          {.text = fact.because}});
  }
  html_heading(out, "Comparison");
  write_table(out, table, "facts");
}

RankSet part_of(const RankSet& ranks, Rank from, Rank to) {
  RankSet part;
  for (const Rank rank : ranks.to_vector()) {
    if (rank >= from && rank < to) {
      part.insert(rank - from);
    }
  }
  return part;
}

// "before, rank 0; after, ranks 0-3".
RankNames names_in(const Comparison& comparison) {
  return [&comparison](const RankSet& ranks) {
    const Rank first = comparison.first.report->world_size;
    std::string text;
    for (const auto& [run, part] :
         {std::pair{&comparison.first, part_of(ranks, 0, first)},
          std::pair{&comparison.second,
                    part_of(ranks, first, first + comparison.second.report->world_size)}}) {
      if (!part.empty()) {
        text += fmt::format("{}{}, {}", text.empty() ? "" : "; ", run->name, ranks_phrase(part));
      }
    }
    return text;
  };
}

void states(Markup& out, const ComparedRun& run) {
  if (run.report == nullptr) {
    return;
  }
  html_heading(out, fmt::format("State of every rank, {}", run.name));
  html_states_table(out, *run.report);
}

}  // namespace

void html_comparison(const Comparison& comparison, std::ostream& out) {
  std::vector<PageTimeline> timelines;
  for (const ComparedRun& run : {comparison.first, comparison.second}) {
    if (run.report != nullptr) {
      timelines.push_back({run.report, fmt::format("Timeline, {}", run.name)});
    }
  }
  Markup page;
  header(page, comparison);
  verdicts(page, comparison);
  facts(page, comparison);
  if (comparison.second.report != nullptr) {
    html_sequences(page, merged_runs(*comparison.first.report, *comparison.second.report),
                   names_in(comparison));
  }
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    timeline_place(page, timelines[i], i);
  }
  states(page, comparison.first);
  states(page, comparison.second);
  html_run(page, *comparison.first.report);
  html_page(out, fmt::format("{}: {}", scenario_of(comparison), summary_of(comparison)), page, timelines);
}

}  // namespace rollcall::viz
