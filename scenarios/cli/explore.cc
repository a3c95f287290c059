// `rollcall explore`: one scenario under many schedules.

#include <csignal>
#include <map>

#include <fmt/format.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/errors.h"
#include "scenarios/cli/progress_bar.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/run/explore_scenario.h"
#include "scenarios/scenario.h"
#include "viz/json_report.h"
#include "viz/text_report.h"

namespace rollcall::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

// The first ends the search with what it has, the second the program.
void on_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

sim::Scheduler scheduler_of(const std::string& name) {
  static const std::map<std::string, sim::Scheduler> schedulers = {{"auto", sim::Scheduler::automatic},
                                                                   {"dfs", sim::Scheduler::dfs},
                                                                   {"random", sim::Scheduler::random},
                                                                   {"pct", sim::Scheduler::pct}};
  return schedulers.at(name);
}

// "2/4": the second of four.
sim::Slice shard_of(const std::string& text) {
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  int end = 0;
  if (std::sscanf(text.c_str(), "%u/%u%n", &index, &count, &end) != 2 ||
      static_cast<std::size_t>(end) != text.size() || index < 1 || index > count) {
    throw UsageError(fmt::format("--shard: '{}' is none; the second of four is 2/4", text));
  }
  return {index - 1, count};
}

scenario::ExploreScenarioOptions options_of(const CommandLine& line) {
  const ExploreArguments& told = line.explore;
  scenario::ExploreScenarioOptions options;
  options.seed = line.seed;
  options.search.schedules = told.schedules;
  options.search.scheduler = scheduler_of(told.scheduler);
  options.search.most_deviations = told.most_preemptions;
  options.search.reduces = !told.full;
  options.search.jobs = static_cast<int>(told.jobs);
  options.search.shard = shard_of(told.shard);
  options.search.seed = line.seed.value_or(0);
  options.search.interrupted = &interrupted;
  return options;
}

// A scenario that says nothing expects `ok`.
ExitCode code_of(const Report& report) {
  if (report.search->interrupted) {
    return ExitCode::interrupted;
  }
  return report.expected.value_or(false) ? ExitCode::as_expected : ExitCode::differs;
}

}  // namespace

ExitCode explore_scenario(const CommandLine& line) {
  scenario::ExploreScenarioOptions options = options_of(line);
  try {
    const scenario::Scenario loaded = scenario::load_scenario(line.file);
    std::signal(SIGINT, on_interrupt);
    ProgressBar progress("exploring");
    options.search.progress = [&](std::int64_t done) {
      progress.show(static_cast<std::size_t>(done), static_cast<std::size_t>(options.search.schedules));
    };
    const Report report = scenario::explore(loaded, options);
    emit(line, line.format == Format::json ? viz::json_report(report)
                                           : viz::text_report(report, {line.detail, wants_color(line)}));
    return code_of(report);
  } catch (const scenario::InvalidScenario& error) {
    show_diagnostics(line, error);
    return ExitCode::invalid;
  }
}

}  // namespace rollcall::cli
