// `rollcall explore`: runs one scenario under many schedules, or disturbed in many ways.

#include <algorithm>
#include <cstdio>
#include <map>

#include <fmt/core.h>

#include "scenarios/cli/checkpoint.h"
#include "scenarios/cli/cli.h"
#include "scenarios/cli/output_files.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/terminal/interruption.h"
#include "scenarios/cli/terminal/progress.h"
#include "scenarios/cli/traces.h"
#include "scenarios/cli/watched_run.h"
#include "scenarios/format/scenario.h"
#include "scenarios/run/explore_scenario.h"
#include "scenarios/run/search_results.h"
#include "scenarios/test/failure_store.h"
#include "scenarios/variants/what_if_table.h"
#include "viz/base/write_file.h"
#include "viz/json/json_report.h"

namespace rollcall::cli {
namespace {

sim::Scheduler scheduler_of(const std::string& name) {
  static const std::map<std::string, sim::Scheduler> schedulers = {{"auto", sim::Scheduler::automatic},
                                                                   {"dfs", sim::Scheduler::dfs},
                                                                   {"random", sim::Scheduler::random},
                                                                   {"pct", sim::Scheduler::pct}};
  return schedulers.at(name);
}

// "2/4": the second of four.
sim::Slice shard_of(const std::string& text) {
  constexpr std::uint32_t most = 100'000;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  int end = 0;
  const bool is_read = std::sscanf(text.c_str(), "%u/%u%n", &index, &count, &end) == 2;
  if (!is_read || static_cast<std::size_t>(end) != text.size() || index < 1 || index > count ||
      count > most) {
    throw UsageError(fmt::format("--shard: '{}' is not a shard; write I/N, such as 2/4", text));
  }
  return {index - 1, count};
}

scenario::ExploreScenarioOptions options_of(const CommandLine& line) {
  const ExploreArguments& told = line.explore;
  scenario::ExploreScenarioOptions options;
  options.seed = line.seed;
  options.search.schedules = told.schedules;
  options.search.scheduler = scheduler_of(told.scheduler);
  options.search.deviations_max = told.preemptions_max;
  options.search.reduces = !told.full;
  options.search.jobs = static_cast<int>(told.jobs);
  options.search.shard = shard_of(told.shard);
  options.search.seed = line.seed.value_or(0);
  return options;
}

const std::string& only_file(const CommandLine& line) {
  if (line.paths.size() != 1) {
    throw UsageError("explore takes one scenario; several files need --merge");
  }
  return line.paths.front();
}

// A scenario without an expectation expects `ok`. No schedule has to fall into a shard.
ExitCode code_of(const Report& report) {
  if (report.search && report.search->interrupted) {
    return ExitCode::interrupted;
  }
  if (report.schedules == 0) {
    return ExitCode::as_expected;
  }
  return report.expected.value_or(false) ? ExitCode::as_expected : ExitCode::differs;
}

// Remembers the schedule, so that `test` tries it first from now on.
void remember(const scenario::Scenario& scenario, const Report& report) {
  constexpr std::string_view option = " --schedule ";
  const std::size_t at = report.replay.rfind(option);
  const Finding* finding = finding_of(report.verdict);
  if (report.expected.value_or(false) || finding == nullptr || at == std::string::npos) {
    return;
  }
  try {
    scenario::store_failure(scenario, report.seed,
                            sim::parse_schedule(std::string_view(report.replay).substr(at + option.size())),
                            finding->headline);
  } catch (const viz::OutputError& error) {
    remark(fmt::format("rollcall: cannot save this schedule for `rollcall test`: {}", error.what()));
  }
}

// Progress is about schedules; that of each run would get in the way.
scenario::Scenario load_explored(const CommandLine& line, Progress& progress) {
  scenario::Scenario loaded = load_watched(only_file(line), progress);
  loaded.options.watch.progress = nullptr;
  return loaded;
}

ExitCode explore_schedules(const CommandLine& line) {
  scenario::ExploreScenarioOptions options = options_of(line);
  const std::vector<ReportFile> reports = report_files(line, page_kinds());
  require_files_of_their_own(line, reports, {only_file(line)});
  Progress progress(line.progress_wish(), "exploring");
  const scenario::Scenario loaded = load_explored(line, progress);
  const Interruption interruption;
  options.search.interrupted = &interruption.flag();
  options.search.progress = [&](std::int64_t done, std::int64_t all) {
    const std::string bar = bar_text("exploring", static_cast<std::size_t>(done),
                                     static_cast<std::size_t>(options.search.schedules));
    progress.say(all == 0 ? bar : fmt::format("{} schedules, of about {}", bar, std::max(all, done)));
  };
  const Report report = scenario::explore(loaded, options);
  progress.clear();
  emit(line, output_of(line, report, {}));
  write_reports(line, reports, writers_of(report));
  remember(loaded, report);
  return code_of(report);
}

// The text that a checkpoint has to agree with.
std::string search_phrase(const CommandLine& line, const scenario::ExploreScenarioOptions& options) {
  const ExploreArguments& told = line.explore;
  return fmt::format(
      "{}, {} schedules, {}, at most {} preemptions, {}reduced, seed {}", only_file(line), told.schedules,
      told.scheduler, told.preemptions_max ? std::to_string(*told.preemptions_max) : "any",
      told.full ? "not " : "", options.seed ? std::to_string(*options.seed) : "of the scenario");
}

// Runs the search as shards, one after the other, each saved when it is done.
ExitCode explore_in_parts(const CommandLine& line) {
  constexpr std::uint32_t parts = 16;
  scenario::ExploreScenarioOptions options = options_of(line);
  if (options.search.shard.count > 1) {
    throw UsageError("--checkpoint already divides the search into parts; leave out --shard");
  }
  Progress progress(line.progress_wish(), "exploring");
  const scenario::Scenario loaded = load_explored(line, progress);
  Checkpoint checkpoint(line.explore.checkpoint, search_phrase(line, options));
  const Interruption interruption;
  options.search.interrupted = &interruption.flag();
  for (std::uint32_t part = 0; part < parts; ++part) {
    if (!checkpoint.has(part) && *options.search.interrupted == 0) {
      options.search.shard = {part, parts};
      options.search.schedules = std::max<std::int64_t>(line.explore.schedules / parts, 1);
      const Report report = scenario::explore(loaded, options);
      if (!report.search->interrupted) {
        checkpoint.add(part, viz::json_report(report));
        remember(loaded, report);
      }
    }
    progress.say(bar_text("exploring: parts", part + 1, parts));
  }
  progress.clear();
  if (checkpoint.results().empty()) {
    return ExitCode::interrupted;
  }
  const scenario::MergedResult merged = scenario::merge_results(checkpoint.results());
  emit(line, line.format == Format::json ? merged.json : merged.text);
  const bool is_expected = merged.verdict == loaded.expect.verdict &&
                           (!loaded.expect.kind || are_same_fault(merged.kind, *loaded.expect.kind));
  return *options.search.interrupted != 0 ? ExitCode::interrupted
         : is_expected                    ? ExitCode::as_expected
                                          : ExitCode::differs;
}

ExitCode explore_disturbances(const CommandLine& line) {
  const Interruption interruption;
  Progress progress(line.progress_wish(), "disturbing the scenario");
  const scenario::WhatIf found = scenario::what_if(
      only_file(line),
      {.seed = line.seed,
       .crash_each = line.explore.crash_each,
       .progress = [&](std::size_t done, std::size_t all) { progress.say(bar_text("what if", done, all)); },
       .interrupted = &interruption.flag()});
  progress.clear();
  emit(line, line.format == Format::json ? what_if_json(found) : what_if_text(found));
  return found.interrupted ? ExitCode::interrupted : ExitCode::as_expected;
}

}  // namespace

ExitCode explore_scenario(const CommandLine& line) {
  if (line.explore.merge) {
    const scenario::MergedResult merged = scenario::merge_results(line.paths);
    emit(line, line.format == Format::json ? merged.json : merged.text);
    return merged.is_expected ? ExitCode::as_expected : ExitCode::differs;
  }
  if (!line.explore.checkpoint.empty()) {
    return explore_in_parts(line);
  }
  return line.explore.what_if ? explore_disturbances(line) : explore_schedules(line);
}

}  // namespace rollcall::cli
