#include "scenarios/cli/real.h"
#include "scenarios/cli/subject.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include <fmt/core.h>

#include "real/backends/backends.h"
#include "scenarios/cli/output_files.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/traces.h"
#include "scenarios/compare/times.h"
#include "scenarios/program/units.h"
#include "viz/base/write_file.h"
#include "viz/rows/phrases.h"

namespace rollcall::cli {
namespace {

// The place that the launcher gave this process, if the user says that there is a launcher.
std::optional<real::LaunchedRank> launched_by(const CommandLine& line) {
  if (!line.real.launched) {
    return std::nullopt;
  }
  std::optional<real::LaunchedRank> launched =
      real::launched_rank([](const char* name) { return std::getenv(name); });
  if (!launched) {
    throw UsageError("--launched: no launcher has set RANK and WORLD_SIZE, or its own names for them");
  }
  if (line.real.ranks && *line.real.ranks != launched->world_size) {
    throw UsageError(
        fmt::format("--ranks {}: {} started {}", *line.real.ranks, launched->launcher, launched->world_size));
  }
  return launched;
}

// Called before anything runs. Returns what users should know about the times that are saved.
std::string remark_on_times(const CommandLine& line, const std::string& backend, Rank ranks_on_this_host) {
  if (line.real.calibrate.empty()) {
    return {};
  }
  const compare::NoTimes none = compare::why_no_times(backend, ranks_on_this_host);
  if (!none.because.empty() && !none.is_stand_in) {
    throw UsageError(fmt::format("--calibrate: {}", none.because));
  }
  if (none.is_stand_in) {
    remark("rollcall: note: " + none.because);
  }
  return none.because;
}

void keep_times(const CommandLine& line, const real::Run& run, Rank ranks_per_node,
                const std::string& remark) {
  if (line.real.calibrate.empty()) {
    return;
  }
  const auto times = compare::facts_of_run(run, ranks_per_node).times;
  if (times.empty()) {
    throw UsageError(
        "--calibrate: no collective of two ranks or more completed after its group's first one, so there is "
        "nothing to keep");
  }
  viz::write_file(line.real.calibrate,
                  [&](std::ostream& out) { out << compare::calibration_file(times, remark); });
}

}  // namespace

RealScenario load_for_real_ranks(const CommandLine& line, std::optional<Rank> ranks) {
  require_scenario(line.file);
  // The backend depends on the number of ranks, and the meaning of the file depends on the backend.
  const scenario::Scenario as_written = scenario::load_scenario(line.file, {.world_size = ranks});
  const std::string backend(real::find_backend(line.real.backend, as_written.options.world_size).name);
  return {scenario::load_scenario(line.file, {.world_size = ranks, .backend = backend}),
          {.backend = backend,
           .deadline = at_least(1, scenario::parse_duration(line.real.deadline), "--deadline",
                                "must be longer than 0"),
           .time_scale = line.real.time_scale,
           .timeline = wants_timeline(line.trace)},
          as_written.options.backend};
}

void remark_on_limits(const CommandLine& line, const RealScenario& loaded) {
  if (line.detail == viz::TextStyle::Detail::quiet) {
    return;
  }
  const sim::Options& options = loaded.scenario.options;
  if ((!options.slow.empty() || !options.jitter.empty()) && line.real.time_scale == 0) {
    remark("rollcall: note: with --time-scale 0 `compute` takes no time, so no rank is slower than another");
  }
  if (loaded.scenario.options.debug == sim::DebugLevel::detail) {
    remark(
        "rollcall: note: real ranks ignore TORCH_DISTRIBUTED_DEBUG=DETAIL, so calls are not compared before "
        "they run");
  }
}

ExitCode run_on_real_ranks(const CommandLine& line) {
  const std::vector<ReportFile> reports = report_files(line, page_kinds());
  require_files_of_their_own(line, reports, {line.file});
  const std::optional<real::LaunchedRank> launched = launched_by(line);
  RealScenario loaded =
      load_for_real_ranks(line, launched ? std::optional(launched->world_size) : line.real.ranks);
  const viz::TraceOptions traced = checked_trace_options(line.trace, loaded.scenario.options.world_size);
  loaded.options.timeline = loaded.options.timeline || wants_timeline(reports);
  remark_on_limits(line, loaded);
  const sim::Options& options = loaded.scenario.options;
  const std::string about_times =
      remark_on_times(line, loaded.options.backend,
                      launched ? std::min(options.world_size, options.ranks_per_host) : options.world_size);
  const std::optional<real::Run> run =
      launched ? scenario::run_launched(loaded.scenario, loaded.options, *launched)
               : scenario::run_real(loaded.scenario, loaded.options);
  if (!run) {
    return ExitCode::as_expected;  // rank 0 has the report
  }
  const Report& report = run->report;
  if (run->log.refused > 0) {
    remark(fmt::format("rollcall: note: {} from unknown processes {} refused",
                       viz::count_phrase(run->log.refused, "connection"),
                       run->log.refused == 1 ? "was" : "were"));
  }
  emit(line, output_of(line, report, traced));
  write_traces(line, report, traced);
  write_reports(line, reports, writers_of(report));
  keep_times(line, *run, options.ranks_per_host, about_times);
  return report.expected.value_or(true) ? ExitCode::as_expected : ExitCode::differs;
}

}  // namespace rollcall::cli
