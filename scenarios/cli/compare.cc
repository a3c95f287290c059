#include <algorithm>
#include <optional>

#include <utility>

#include <fmt/format.h>

#include "scenarios/cli/output_files.h"
#include "scenarios/cli/pages.h"
#include "scenarios/cli/real.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/terminal/progress.h"
#include "scenarios/compare/claims.h"
#include "scenarios/compare/result_file.h"
#include "scenarios/compare/simulated_facts.h"
#include "scenarios/compare/times.h"
#include "viz/base/write_file.h"
#include "viz/html/html_comparison.h"

namespace rollcall::cli {
namespace {

// The real side: run now, or read from a file.
struct RealSide {
  scenario::Scenario scenario;  // to be simulated
  std::string written_for;
  compare::Facts facts;
  std::optional<Report> report;  // of a run that was made now
};

RealSide run_now(const CommandLine& line, bool timeline) {
  RealScenario loaded = load_for_real_ranks(line, line.real.ranks);
  loaded.options.timeline = timeline;
  remark_on_limits(line, loaded);
  real::Run run = scenario::run_real(loaded.scenario, loaded.options);
  const sim::Options& options = loaded.scenario.options;
  compare::Facts facts = compare::facts_of_run(run, options.ranks_per_host);
  facts.no_times = compare::why_no_times(loaded.options.backend, options.world_size).because;
  RealSide side{std::move(loaded.scenario), loaded.written_for, std::move(facts), std::move(run.report)};
  if (!line.real.record.empty()) {
    const std::string text = compare::write_result(side.facts, line.real.deadline);
    viz::write_file(line.real.record, [&text](std::ostream& out) { out << text; });
  }
  return side;
}

RealSide read_recorded(const CommandLine& line) {
  compare::Facts facts = compare::read_result(line.real.recorded);
  const auto ranks = static_cast<Rank>(facts.ranks.size());
  const std::string written_for = scenario::load_scenario(line.file, {.world_size = ranks}).options.backend;
  scenario::Scenario loaded =
      scenario::load_scenario(line.file, {.world_size = ranks, .backend = facts.backend});
  if (!facts.scenario.empty() && facts.scenario != loaded.name) {
    remark(fmt::format("rollcall: note: {} holds results of '{}', and {} is '{}'", line.real.recorded,
                       facts.scenario, line.file, loaded.name));
  }
  return {std::move(loaded), written_for, std::move(facts), std::nullopt};
}

// What the claims say about two sides, to be printed and written.
struct Outcome {
  std::vector<compare::Claim> claims;
  const compare::Facts& second;
  compare::Sides sides;
};

// The sentence for --quiet.
std::string sentence_of(const std::vector<compare::Claim>& claims, const compare::Sides& sides) {
  if (const auto lack = std::ranges::find(claims, true, &compare::Claim::is_lack); lack != claims.end()) {
    return fmt::format("cannot be compared: {}\n", lack->because);
  }
  std::vector<std::string> different;
  for (const compare::Claim& claim : claims) {
    if (claim.judgement == compare::Claim::Judgement::differs) {
      different.push_back(claim.about);
    }
  }
  return different.empty()
             ? fmt::format("{} and {} agree\n", sides.first, sides.second)
             : fmt::format("{} and {} differ: {}\n", sides.first, sides.second, fmt::join(different, ", "));
}

ExitCode show(const CommandLine& line, const std::vector<ReportFile>& files, const Outcome& outcome,
              const Report& first, const Report* second) {
  const auto& [claims, facts, sides] = outcome;
  const std::string json = compare::json_of(claims, facts, sides);
  emit(line, line.format == Format::json                    ? json
             : line.detail == viz::TextStyle::Detail::quiet ? sentence_of(claims, sides)
                                                            : compare::text_of(claims, facts, sides));
  const auto page = [&](std::ostream& out) {
    const std::string absence =
        second != nullptr ? "" : "Results saved by --record hold facts and digests, but no times to draw.";
    viz::html_comparison({{sides.first, &first}, {sides.second, second, absence}, compared_facts(claims)},
                         out);
  };
  write_reports(line, files, {{"html", page}, {"json", [&json](std::ostream& out) { out << json; }}});
  if (std::ranges::any_of(claims, &compare::Claim::is_lack)) {
    return ExitCode::unavailable;
  }
  return compare::any_differs(claims) ? ExitCode::differs : ExitCode::as_expected;
}

ExitCode compare_with_real(const CommandLine& line, const std::vector<ReportFile>& files) {
  const bool timeline = wants_timeline(files);
  const RealSide side = line.real.recorded.empty() ? run_now(line, timeline) : read_recorded(line);
  const compare::SimulatedRun simulated = compare::simulate(side.scenario, timeline);
  return show(line, files,
              {compare::compare(simulated.facts, side.facts, side.written_for, side.scenario.options.cluster),
               side.facts,
               {}},
              simulated.report, side.report ? &*side.report : nullptr);
}

std::pair<compare::SimulatedRun, compare::SimulatedRun> load_both(const CommandLine& line) {
  Progress progress(line.progress_wish(), "reading " + line.file);
  return {load_run(line.file, progress), load_run(line.other, progress)};
}

ExitCode compare_two_runs(const CommandLine& line, const std::vector<ReportFile>& files) {
  if (!line.real.record.empty() || !line.real.recorded.empty() || line.real.ranks) {
    throw UsageError(
        "--ranks, --record and --recorded need a single scenario; two files are compared as they are");
  }
  const auto [before, after] = load_both(line);
  return show(line, files,
              {compare::compare_runs(before.facts, after.facts), after.facts, {"before", "after"}},
              before.report, &after.report);
}

}  // namespace

ExitCode compare_with_real_ranks(const CommandLine& line) {
  const std::vector<ReportFile> files = report_files(line, page_kinds());
  require_files_of_their_own(line, files, {line.file, line.other, line.real.recorded});
  return line.other.empty() ? compare_with_real(line, files) : compare_two_runs(line, files);
}

}  // namespace rollcall::cli
