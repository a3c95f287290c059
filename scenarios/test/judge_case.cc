#include "scenarios/test/judge_case.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/run/explore_scenario.h"
#include "scenarios/run/golden.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/source_lines.h"
#include "viz/html/html_report.h"
#include "viz/json/json_report.h"
#include "viz/rows/call_sequences.h"
#include "viz/rows/verdict_parts.h"
#include "viz/text/text_report.h"

namespace rollcall::scenario {
namespace {

using viz::SourcePlace;
using viz::TestOutcome;

// Reports name a scenario's file without its folder; this restores the whole path.
SourcePlace place_of(std::string_view site, const std::string& file) {
  SourcePlace place = place_of_site(site);
  if (place.file == std::filesystem::path(file).filename()) {
    place.file = file;
  }
  return place;
}

// The place at which a failure is shown: the call where the run failed, or else the expectation.
SourcePlace place_of(const Report& report, const std::string& file, const SourcePlace& expect) {
  const std::string place = viz::place_to_look(report.verdict);
  return place.empty() ? expect : place_of(place, file);
}

// The place after "at" in " from gradients at train.json:12:7".
SourcePlace place_of_origin(const std::string& origin, const std::string& file) {
  const std::size_t at = origin.rfind(" at ");
  return at == std::string::npos ? SourcePlace{} : place_of(std::string_view(origin).substr(at + 4), file);
}

// The last calls of every set of ranks that made the same ones.
std::vector<TestOutcome::Calls> last_calls(const Report& report, const std::string& file) {
  constexpr std::size_t calls_max = 15;
  std::vector<TestOutcome::Calls> all;
  for (const viz::CallSequences::Column& column : viz::call_sequences(report).columns) {
    TestOutcome::Calls& calls = all.emplace_back();
    calls.ranks = ranks_phrase(column.ranks);
    for (const viz::CallSequences::Cell& cell : column.cells) {
      if (!cell.call.empty()) {
        calls.calls.push_back({cell.call + cell.origin + (cell.never_returned ? ", never returned" : ""),
                               place_of_origin(cell.origin, file)});
      }
    }
    if (calls.calls.size() > calls_max) {
      calls.calls.erase(calls.calls.begin(), calls.calls.end() - calls_max);
    }
  }
  return all;
}

std::string page_of(const Report& report) {
  std::ostringstream page;
  viz::html_report(report, page);
  return page.str();
}

std::string errors_json(const InvalidScenario& error) {
  nlohmann::ordered_json errors = nlohmann::ordered_json::array();
  for (const Diagnostic& each : error.diagnostics()) {
    errors.push_back({{"file", each.file},
                      {"line", each.line},
                      {"column", each.column},
                      {"pointer", each.pointer},
                      {"message", each.message}});
  }
  const nlohmann::ordered_json object = {{"schema_version", 1}, {"errors", std::move(errors)}};
  return object.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

void fill_invalid(TestOutcome& outcome, const InvalidScenario& error) {
  const Diagnostic& first = error.diagnostics().front();
  outcome.status = TestOutcome::Status::invalid;
  outcome.place = {first.file, first.line, first.column};
  outcome.problems.push_back(
      fmt::format("{}{}", first.line > 0 ? fmt::format("line {}: ", first.line) : "", first.message));
  outcome.text = std::string(error.what()) + "\n";
  outcome.json = errors_json(error);
}

// The file with this case's calls, in a folder for all cases.
std::string golden_in(const std::string& folder, const Case& one) {
  namespace fs = std::filesystem;
  fs::path file = fs::path(one.file).lexically_normal().relative_path();
  file.replace_extension();
  while (!file.empty() && *file.begin() == "..") {
    file = file.lexically_relative("..");
  }
  return (fs::path(folder) / (file.generic_string() + ".golden")).generic_string();
}

// How many schedules a test that expects a race tries. `minimize` tries fewer for each candidate, so what it finds is
// found here, too.
constexpr std::int64_t schedules_of_test = 1000;

Report run_case(Scenario& scenario, const Case& one, const JudgeOptions& options) {
  if (!options.golden.empty()) {
    scenario.expect.golden = golden_in(options.golden, one);
  }
  const std::string golden = options.update_golden ? golden_file(scenario) : "";
  if (options.update_golden) {
    scenario.expect.golden.clear();
  }
  const bool timeline = options.timeline || options.page || !golden.empty();
  Report report = run(scenario, {.seed = options.seed, .timeline = timeline});
  // A race may need an order of messages or of calls to the store that the usual schedule does not have.
  if (scenario.expect.verdict == "race" && !std::holds_alternative<Race>(report.verdict)) {
    Report explored = explore(scenario, {.search = {.schedules = schedules_of_test}, .seed = options.seed});
    if (std::holds_alternative<Race>(explored.verdict)) {
      report = std::move(explored);
    }
  }
  if (!golden.empty()) {
    update_golden(golden, report);
  }
  return report;
}

// The report of the first known failure of this case that still happens. Those that do not are forgotten.
std::optional<Report> repeat_known(const Scenario& scenario, const Case& one, const JudgeOptions& options) {
  for (const StoredFailure& failure : options.known) {
    if (!failure.is_of(one) || options.update_golden) {
      continue;
    }
    try {
      Report report = run(
          scenario,
          {.seed = failure.seed, .timeline = options.timeline || options.page, .schedule = failure.schedule});
      if (!report.unmet.empty()) {
        return report;
      }
    } catch (const ScheduleDoesNotFit&) {
      // The program has changed: the schedule says nothing about it.
    }
    forget_failure(failure);
  }
  return std::nullopt;
}

}  // namespace

TestOutcome outcome_of(const Scenario& scenario, const Report& report, const SourcePlace& expect) {
  TestOutcome outcome;
  outcome.file = scenario.file;
  outcome.title = scenario.name;
  outcome.status = report.unmet.empty() ? TestOutcome::Status::passed : TestOutcome::Status::failed;
  outcome.place = place_of(report, scenario.file, expect);
  outcome.verdict = verdict_word(report.verdict);
  if (const Finding* finding = finding_of(report.verdict)) {
    outcome.kind = to_string(finding->kind);
    outcome.headline = finding->headline;
  } else if (report.ops == 0 && report.simulated_time == 0) {
    outcome.headline = "nothing was tested: no rank does anything";
  }
  outcome.problems = report.unmet;
  outcome.replay = report.replay;
  outcome.seed = report.seed;
  outcome.text = viz::text_report(report, {});
  outcome.json = viz::json_report(report);
  if (outcome.status != TestOutcome::Status::passed) {
    outcome.calls = last_calls(report, scenario.file);
  }
  return outcome;
}

TestOutcome judge_case(const Case& one, const JudgeOptions& options) {
  const SourcePlace expect{one.file, one.expect.line, one.expect.column};
  try {
    const std::string selection = one.parameters.empty() ? "" : fmt::format("[{}]", one.parameters);
    Scenario scenario = load_scenario(one.file, {.selection = selection});
    std::optional<Report> known = repeat_known(scenario, one, options);
    const Report report = known ? std::move(*known) : run_case(scenario, one, options);
    TestOutcome outcome = outcome_of(scenario, report, expect);
    outcome.tags = one.tags;
    const viz::TextStyle::Detail detail =
        options.verbose ? viz::TextStyle::Detail::verbose : viz::TextStyle::Detail::normal;
    if (options.verbose) {
      outcome.text = viz::text_report(report, {detail, false});
    }
    if (options.color) {
      outcome.shown = viz::text_report(report, {detail, true});
    }
    if (options.page) {
      outcome.page = page_of(report);
    }
    return outcome;
  } catch (const InvalidScenario& error) {
    TestOutcome outcome;
    outcome.file = one.file;
    outcome.title = one.title();
    outcome.tags = one.tags;
    fill_invalid(outcome, error);
    return outcome;
  }
}

}  // namespace rollcall::scenario
