// `rollcall record`: turns an unchanged PyTorch script into a scenario.

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/cluster_choice.h"
#include "scenarios/cli/output_files.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/scripts/record.h"
#include "scenarios/cli/subject.h"
#include "scenarios/cli/traces.h"
#include "scenarios/program/units.h"
#include "scenarios/record/recorded_outcome.h"
#include "scenarios/record/recorded_script.h"
#include "scenarios/record/script_run.h"
#include "sim/diagnose/installed_code.h"
#include "viz/base/write_file.h"

namespace rollcall::cli {
namespace {

using scenario::Answers;
using scenario::RecordedScript;
using scenario::ScriptRun;

void require_script(const std::string& script) {
  if (!std::filesystem::is_regular_file(script)) {
    throw UsageError(fmt::format("'{}' is not a file", script));
  }
  if (const Subject subject = subject_of(script); subject != Subject::script && subject != Subject::dumps) {
    throw UsageError(fmt::format("'{}' is not a script but {}", script, advice_on(subject, script)));
  }
}

// People write options of rollcall after the script, where they are the script's.
bool gives_world_size_to_script(const CommandLine& line) {
  return std::any_of(line.paths.begin() + 1, line.paths.end(), [](std::string_view argument) {
    return argument == "-n" || argument.starts_with("--world-size");
  });
}

scenario::ScriptOptions script_options(const CommandLine& line, bool timeline) {
  scenario::ScriptOptions options;
  options.script = line.paths.front();
  require_script(options.script);
  if (!line.record.world_size) {
    throw UsageError(gives_world_size_to_script(line)
                         ? fmt::format("record needs --world-size before the script; what stands after {} "
                                       "belongs to the script",
                                       options.script)
                         : "record needs --world-size, the number of ranks");
  }
  options.kernels = line.record.kernels;
  options.kernels_from = line.predict.kernels_from;
  options.world_size = *line.record.world_size;
  options.records = line.record.records;
  options.pretends_gpus = line.record.pretends_gpus;
  options.gpus_per_host = line.record.gpus_per_host.value_or(0);
  options.sampled = line.record.sampled.value_or(0);
  options.arguments.assign(line.paths.begin() + 1, line.paths.end());
  options.python = line.record.python;
  const Duration patience = at_least(millisecond, scenario::parse_duration(line.record.patience),
                                     "--patience " + line.record.patience, "must be at least 1ms");
  options.patience = std::chrono::milliseconds(patience / millisecond);
  options.timeline = timeline;
  return options;
}

// True if the user asked for nothing else.
bool run_together_by_default(const CommandLine& line) {
  const RecordArguments& asked = line.record;
  return !asked.simulate && !asked.fake && !asked.live && !asked.kernels && !asked.sampled &&
         asked.world_size && *asked.world_size <= RecordArguments::together_max && !line.paths.empty();
}

// Records a command that starts real ranks.
ScriptRun run_live(const CommandLine& line) {
  ScriptRun run;
  int code = 0;
  run.record = scenario::run_live(line.paths, line.record.records, code);
  if (code != 0) {
    remark(fmt::format("rollcall: {} exited with code {}", line.paths.front(), code));
  }
  return run;
}

// The reason why ranks that ran alone cannot represent the job; empty if they can.
std::string doubt_about(const traces::ScriptRecord& alone) {
  if (const std::vector<std::string> reads = scenario::data_dependent_places(alone); !reads.empty()) {
    return fmt::format("the script reads what it received ({})", fmt::join(reads, ", "));
  }
  if (std::ranges::any_of(alone.ranks, &traces::ScriptRank::calls_in_threads)) {
    return "threads of a rank call at the same time";
  }
  if (const std::vector<std::string> refused = scenario::refused_places(alone); !refused.empty()) {
    return fmt::format("a list has not one tensor per rank ({})", fmt::join(refused, ", "));
  }
  if (const std::string failure = scenario::lone_failure(alone); !failure.empty()) {
    return failure + " while it ran alone";
  }
  return {};
}

}  // namespace

ScriptRun run_recorded(const CommandLine& line, bool timeline) try {
  if (line.paths.empty() && !line.record.records.empty()) {
    if (!std::filesystem::is_directory(line.record.records)) {
      throw UsageError(fmt::format("--records {}: is not a folder", line.record.records));
    }
    return {traces::read_script_record(line.record.records), {}};
  }
  if (line.paths.empty()) {
    throw UsageError("record needs a script: rollcall record --world-size 4 train.py");
  }
  if (line.record.live) {
    return run_live(line);
  }
  scenario::ScriptOptions options = script_options(line, timeline);
  if (line.record.simulate || run_together_by_default(line)) {
    return run_script(options, Answers::simulator);
  }
  ScriptRun alone = run_script(options, Answers::fake);
  if (alone.was_interrupted) {
    return alone;
  }
  const std::string doubt = doubt_about(alone.record);
  if (doubt.empty()) {
    return alone;
  }
  if (line.record.fake) {
    remark(fmt::format("rollcall: {}: the rest is recorded as if every rank had sent the same data", doubt));
    return alone;
  }
  remark(fmt::format("rollcall: {}: running it again with all ranks in the simulator", doubt));
  options.says_that_it_pretends = false;  // already done
  options.begins_on_gpus = alone.began_on_gpus;
  return run_script(options, Answers::simulator);
} catch (const std::filesystem::filesystem_error& problem) {
  throw UsageError(problem.what());
}

namespace {

bool stands_still(const Verdict& verdict) {
  return std::holds_alternative<Deadlock>(verdict) || std::holds_alternative<Mismatch>(verdict);
}

// Stalled ranks make no further calls. So it may remain open which rank is to blame, and another call instead of one
// may end well only because nothing follows.
bool leaves_open(const Finding& finding) {
  return finding.tie || !finding.repair || finding.repair->steps.empty() ||
         finding.repair->alternatives > 0 ||
         std::ranges::any_of(finding.repair->steps, [](const RepairStep& step) {
           return step.text.find(" instead of ") != std::string::npos;
         });
}

// True if `alone` says more than `together` and may replace it: it has a change with which all ranks finish, to their
// ends, or it blames some of the same ranks for the same standstill.
bool narrows_down(const Report& alone, const Report& together) {
  const Finding* told = finding_of(alone.verdict);
  const Finding* known = finding_of(together.verdict);
  if (told == nullptr || !told->at || !known->at || alone.verdict.index() != together.verdict.index()) {
    return false;
  }
  const bool is_repaired = told->repair && !told->repair->steps.empty();
  if (!known->culprits.contains(told->culprits)) {
    return is_repaired && told->repair->alternatives == 0 && !told->tie;
  }
  return is_repaired ||
         (told->at->call.op == known->at->call.op && told->at->call.group == known->at->call.group &&
          told->at->call.seq == known->at->call.seq);
}

// Stalled ranks do make their next calls if each runs alone. These calls count only if the ranks begin with the same
// calls as before.
void ask_each_alone(const CommandLine& line, const ScriptRun& together, const std::string& file,
                    bool timeline, RecordedScript& recorded) {
  const bool ran_together = line.record.simulate || run_together_by_default(line);
  const bool all_finished = std::ranges::all_of(together.record.ranks, [](const traces::ScriptRank& rank) {
    return rank.end.how == traces::ScriptEnd::How::finished;
  });
  // After a timeout, too, the ranks did make their next calls.
  const bool is_whole = all_finished || scenario::limit_of_waits(together.record);
  if (!ran_together || is_whole || line.paths.empty() || !stands_still(recorded.report.verdict)) {
    return;
  }
  if (!leaves_open(*finding_of(recorded.report.verdict))) {
    return;
  }
  scenario::ScriptOptions options = script_options(line, timeline);
  options.is_silent = true;
  options.says_that_it_pretends = false;
  options.begins_on_gpus = together.began_on_gpus;
  options.records.clear();
  const ScriptRun alone = run_script(options, Answers::fake);
  if (alone.was_interrupted || !doubt_about(alone.record).empty() ||
      !scenario::goes_on_from(alone.record, together.record)) {
    return;
  }
  RecordedScript told = scenario::recorded_script(alone.record, file, nullptr, timeline);
  if (narrows_down(told.report, recorded.report)) {
    recorded.text = std::move(told.text);
    recorded.report = std::move(told.report);
    recorded.reservation = std::move(told.reservation);
  }
}

// The installed package that a file belongs to, such as "torch"; empty for the script's own files.
std::string_view package_of(std::string_view file) {
  const std::string_view inside = check::without_packages_folder(file);
  return inside.size() == file.size() ? std::string_view() : inside.substr(0, inside.find('/'));
}

// One line "    train.py:13 in main" per frame, as Python prints stacks: innermost last. Frames of packages between
// others are only counted.
std::string stack_text(const traces::ScriptRank& rank) {
  constexpr std::size_t shown_max = 2;  // in a row
  std::string text;
  const auto line_of = [](const traces::ScriptFrame& frame) {
    return fmt::format("\n    {}:{} in {}", frame.file, frame.line, frame.function);
  };
  const std::vector<traces::ScriptFrame> frames(rank.stack.rbegin(), rank.stack.rend());
  for (auto frame = frames.begin(); frame != frames.end();) {
    const std::string_view package = package_of(frame->file);
    const auto end = std::find_if(frame + 1, frames.end(), [&](const traces::ScriptFrame& next) {
      return package.empty() || package_of(next.file) != package;
    });
    const auto counted = static_cast<std::size_t>(end - frame) - (end == frames.end() ? 1 : 0);
    if (!package.empty() && counted > shown_max) {
      text += fmt::format("\n    ... {} frames of {}", counted, package);
      frame += static_cast<std::ptrdiff_t>(counted);
    }
    for (; frame != end; ++frame) {
      text += line_of(*frame);
    }
  }
  return text;
}

}  // namespace

void say_stacks(const traces::ScriptRecord& record) {
  std::map<std::string, RankSet> ranks_at;
  for (const traces::ScriptRank& rank : record.ranks) {
    if (!rank.stack.empty()) {
      ranks_at[stack_text(rank)].insert(rank.rank);
    }
  }
  for (const auto& [stack, ranks] : ranks_at) {
    remark(fmt::format("rollcall: Python stack of {}:{}", ranks_phrase(ranks), stack));
  }
}

void say_problems(const ScriptRun& run, const RecordedScript& recorded) {
  for (const std::string& text : recorded.remarks) {
    remark("rollcall: " + text);
  }
  if (!recorded.reservation.empty()) {
    remark("rollcall: " + recorded.reservation);
  }
  if (!run.simulated.problem.empty()) {
    remark("rollcall: " + run.simulated.problem);
  }
}

namespace {

// Writes the report. -o is used for the scenario.
void write_report(const CommandLine& line, const std::vector<ReportFile>& files, const Report& report) {
  const viz::TraceOptions traced = checked_trace_options(line.trace, report.world_size);
  CommandLine for_report = line;
  for_report.output.clear();
  emit(for_report, output_of(for_report, report, traced));
  write_traces(line, report, traced);
  write_reports(line, files, writers_of(report));
}

}  // namespace

ExitCode record_script(const CommandLine& line) {
  const std::vector<ReportFile> reports = report_files(line, page_kinds());
  require_files_of_their_own(line, reports, {line.paths.empty() ? "" : line.paths.front()});
  require_folders(line, reports);
  const bool timeline = wants_timeline(line.trace) || wants_timeline(reports);
  if (line.trace.chart && line.format == Format::json) {
    throw UsageError("--timeline prints text; leave out --format json");
  }
  if (line.record.world_size) {
    checked_trace_options(line.trace, *line.record.world_size);  // throws before the script runs, not after
  }
  if (line.record.kernels && line.predict.cluster.empty()) {
    throw UsageError("--kernels needs --cluster, such as h100-8: how long a kernel takes depends on the GPU");
  }
  std::optional<scenario::OrderedJson> cluster;
  if (line.record.kernels) {
    cluster = cluster_in_scenario(line.predict.cluster);
  }
  const ScriptRun done = run_recorded(line, timeline);
  if (done.was_interrupted && done.record.ranks.empty()) {
    remark("rollcall: interrupted");
    return ExitCode::interrupted;
  }
  const std::string file = line.output.empty() ? "recorded.json" : line.output;
  // Throws InvalidScenario for a record that another program made, or a call that no scenario can have.
  RecordedScript recorded = scenario::recorded_script(
      done.record, file, done.simulated.is_whole() ? &done.simulated.report : nullptr, timeline,
      cluster ? &*cluster : nullptr);
  if (!done.was_interrupted) {
    ask_each_alone(line, done, file, timeline, recorded);
    scenario::blame_threads(done.record, recorded.report.verdict);
    scenario::blame_exceptions(done.record, recorded.report);
    say_problems(done, recorded);
  }
  const bool found_something = finding_of(recorded.report.verdict) != nullptr;
  if (recorded.text.empty() && !found_something) {
    remark("rollcall: error: no rank called init_process_group, so there is nothing to judge");
    return ExitCode::invalid;
  }
  say_stacks(done.record);
  if (recorded.text.empty()) {
    remark("rollcall: no rank called init_process_group, so there is no scenario");
  }
  const bool has_file = !line.output.empty() && !recorded.text.empty();
  if (!has_file || recorded.is_only_in_run) {
    recorded.report.replay = line.test.command;
  }
  if (has_file) {
    viz::write_file(line.output, [&](std::ostream& out) { out << recorded.text; });
  }
  if (done.was_interrupted) {
    remark(line.output.empty() ? "rollcall: interrupted"
                               : "rollcall: interrupted; what the ranks had called by then is written");
    return ExitCode::interrupted;
  }
  write_report(line, reports, recorded.report);
  return found_something ? ExitCode::differs : ExitCode::as_expected;
}

}  // namespace rollcall::cli
