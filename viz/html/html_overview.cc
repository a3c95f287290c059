#include "viz/html/html_overview.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include <fmt/core.h>

#include "viz/html/html_page.h"
#include "viz/html/html_table.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

namespace {

using Status = TestOutcome::Status;

// Outcomes that need attention come first; otherwise they are in order of selection.
std::vector<const TestOutcome*> in_order(const TestRun& run) {
  std::vector<const TestOutcome*> outcomes;
  for (const TestOutcome& outcome : run.outcomes) {
    outcomes.push_back(&outcome);
  }
  std::ranges::stable_partition(outcomes,
                                [](const TestOutcome* each) { return each->status != Status::passed; });
  return outcomes;
}

void write_title(Markup& page, const TestOutcome& outcome) {
  const std::string title = outcome.title.empty() ? outcome.file : outcome.title;
  page.open("th", {{"scope", "row"}, {"align", "left"}});
  if (outcome.link.empty()) {
    page.text(title);
  } else {
    page.element("a", title, {{"href", outcome.link}});
  }
  page.single("br", {}).element("small", outcome.file).close("th");
}

void write_row(Markup& page, const TestOutcome& outcome) {
  const bool passed = outcome.status == Status::passed;
  page.open("tr", {{"data-state", to_string(outcome.status)}});
  page.element("td", to_string(outcome.status), {{"class", passed ? "" : "differs"}});
  write_title(page, outcome);
  const bool has_kind = !outcome.kind.empty() && outcome.kind != outcome.verdict;
  page.element("td", has_kind ? outcome.verdict + ": " + outcome.kind : outcome.verdict);
  const std::string why = passed ? outcome.headline : outcome.reason();
  page.open("td").text(why);
  if (!outcome.replay.empty()) {
    if (!why.empty()) {
      page.single("br", {});
    }
    page.element("code", outcome.replay);
  }
  page.close("td").close("tr").line();
}

}  // namespace

void html_overview(const TestRun& run, std::ostream& out) {
  const bool good = !run.interrupted && run.count(Status::passed) == run.outcomes.size();
  Markup page;
  page.open("header", {{"class", good ? "success" : ""}}).open("h1");
  page.element("span", counts_phrase(run), {{"class", "word"}}).close("h1");
  page.element("p", run.command, {{"class", "scenario"}});
  if (run.interrupted) {
    page.element("p", "The run was interrupted; scenarios that are missing did not run.");
  }
  page.close("header").line();
  open_table(page, fmt::format("outcomes {}", filtered_look), {"result", "scenario", "verdict", "reason"});
  for (const TestOutcome* outcome : in_order(run)) {
    write_row(page, *outcome);
  }
  close_table(page);
  html_page(out, "rollcall: " + counts_phrase(run), page, {});
}

}  // namespace rollcall::viz
