#include "scenarios/cli/cli.h"

#include <optional>
#include <vector>

#include <fmt/core.h>

#include "scenarios/cli/output_files.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/terminal/progress.h"
#include "scenarios/cli/traces.h"
#include "scenarios/cli/watched_run.h"
#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "scenarios/test/judge_case.h"
#include "scenarios/test/timestamp.h"

namespace rollcall::cli {

namespace {

// A scenario without an expectation expects `ok`.
bool is_as_expected(const Report& report) {
  return report.expected.value_or(finding_of(report.verdict) == nullptr);
}

// One scenario as a test run, for the kinds of reports that need one.
viz::TestRun as_test_run(const CommandLine& line, const scenario::Scenario& scenario, const Report& report) {
  viz::TestRun run;
  run.outcomes.push_back(scenario::outcome_of(scenario, report, {scenario.file, 1, 1}));
  run.selected = 1;
  run.timestamp = scenario::timestamp();
  run.command = line.test.command;
  return run;
}

std::optional<sim::Schedule> schedule_of(const CommandLine& line) {
  if (line.schedule.empty()) {
    return std::nullopt;
  }
  try {
    return sim::parse_schedule(line.schedule);
  } catch (const sim::BadSchedule& error) {
    throw UsageError(fmt::format("--schedule: {}", error.what()));
  }
}

}  // namespace

ExitCode run_scenario(const CommandLine& line) {
  if (line.trace.chart && line.format == Format::json) {
    throw UsageError("--timeline prints text; leave out --format json");
  }
  const std::vector<ReportFile> reports = report_files(line, run_kinds());
  require_files_of_their_own(line, reports, {line.file});
  try {
    Progress progress(line.progress_wish(), "starting");
    const scenario::Scenario loaded = load_watched(line.file, progress);
    const viz::TraceOptions traced = checked_trace_options(line.trace, loaded.options.world_size);
    const bool timeline = wants_timeline(line.trace) || wants_timeline(reports);
    const Report report = scenario::run(loaded, {.seed = line.seed,
                                                 .timeline = timeline,
                                                 .schedule = schedule_of(line),
                                                 .tries_repairs = !line.no_repair});
    progress.say("writing the report");
    const std::string text = output_of(line, report, traced);
    progress.clear();
    emit(line, text);
    write_traces(line, report, traced);
    const viz::TestRun run = as_test_run(line, loaded, report);
    write_reports(line, reports, writers_of(report, run));
    return is_as_expected(report) ? ExitCode::as_expected : ExitCode::differs;
  } catch (const scenario::ScheduleDoesNotFit& error) {
    throw UsageError(fmt::format("--schedule: {}: {}", line.file, error.what()));
  }
}

}  // namespace rollcall::cli
