// `rollcall watch`: runs a job unchanged, and names the culprit while it hangs.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <ranges>
#include <sstream>

#include <fmt/core.h>
#include <unistd.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/dump_files.h"
#include "scenarios/cli/judged_dumps.h"
#include "scenarios/program/units.h"
#include "scenarios/run/source_lines.h"
#include "scenarios/watch/attach.h"
#include "scenarios/watch/watched_job.h"
#include "sim/base/parse_number.h"
#include "sim/diagnose/dump_judge.h"
#include "traces/dumps/dump_report.h"
#include "traces/formats/recordings.h"
#include "traces/watch/pulse.h"
#include "viz/base/text_style.h"
#include "viz/json/json_diagnosis.h"
#include "viz/text/text_diagnosis.h"

namespace rollcall::cli {

namespace {

constexpr std::size_t frames_max = 12;

bool is_python_itself(const check::DumpFrame& frame) {
  return frame.file.find("/multiprocessing/") != std::string::npos || frame.file.starts_with('<') ||
         frame.file.find("/runpy.py") != std::string::npos ||
         frame.file.find("rollcall_recorder/") != std::string::npos;
}

// Formats a stack as Python does: innermost last.
std::string stack_text(const watch::StackOfRanks& stack) {
  if (stack.frames.empty()) {
    return fmt::format("  {}: no Python stack was received\n", ranks_phrase(stack.ranks));
  }
  std::string text = fmt::format("  {}:\n", ranks_phrase(stack.ranks));
  check::DumpStack shown = stack.frames;
  std::erase_if(shown, is_python_itself);
  shown.resize(std::min(shown.size(), frames_max));
  for (const check::DumpFrame& frame : std::views::reverse(shown)) {
    text += fmt::format("    {}:{} in {}\n", frame.file, frame.line, frame.function);
  }
  return text;
}

// The reason why the judge was asked.
std::string occasion_text(const watch::Answer& answer, bool blames_nobody) {
  switch (answer.occasion) {
    case watch::Answer::Occasion::stands_still:
      return fmt::format("rollcall: nothing has moved for {}{}\n", watch::elapsed_phrase(answer.silence),
                         blames_nobody ? ", and the calls of the ranks blame no rank" : "");
    case watch::Answer::Occasion::failed:
      return "rollcall: the job has failed\n";
    case watch::Answer::Occasion::at_work:
      return "rollcall: the job is still running, but its numbers are wrong\n";
  }
  return {};
}

std::string report_text(const CommandLine& line, const watch::Answer& answer) {
  if (line.format == Format::json) {
    return viz::json_diagnosis(answer.diagnosis, {});
  }
  const bool blames_nobody = answer.diagnosis.finding.kind == FindingKind::no_fault;
  std::string text = occasion_text(answer, blames_nobody);
  if (!blames_nobody) {
    Diagnosis diagnosis = answer.diagnosis;
    scenario::read_sources(diagnosis);
    text += viz::text_diagnosis(diagnosis, {line.detail, wants_color(line, STDERR_FILENO)});
  }
  const bool has_stacks =
      std::ranges::any_of(answer.stacks, [](const auto& stack) { return !stack.frames.empty(); });
  if (line.detail != viz::TextStyle::Detail::quiet && has_stacks) {
    text += "Python stacks:\n";
    for (const watch::StackOfRanks& stack : answer.stacks) {
      text += viz::printable_lines(stack_text(stack));
    }
  }
  return text;
}

// Writes a report to standard error, because standard output belongs to the job.
void say(std::string report) {
  if (report.ends_with('\n')) {
    report.pop_back();
  }
  const std::string safe = viz::without_commands(std::move(report));
  remark({std::string_view(safe)});
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The node's number, as launchers count: Slurm, torchrun, the PyTorch operator, and indexed jobs of
// Kubernetes.
int number_of_node() {
  for (const char* name :
       {"SLURM_NODEID", "GROUP_RANK", "NODE_RANK", "PET_NODE_RANK", "JOB_COMPLETION_INDEX"}) {
    if (const auto node = parse_number<int>(variable(name)); node && *node >= 0) {
      return *node;
    }
  }
  throw UsageError("--node: no variable says which node this is; set NODE_RANK");
}

watch::Address meeting_place(const CommandLine& line) {
  std::string text = line.watch.meet;
  if (text.empty()) {
    const std::string port = variable("MASTER_PORT");
    const bool is_number =
        !port.empty() && port.size() < 6 && port.find_first_not_of("0123456789") == std::string::npos;
    if (variable("MASTER_ADDR").empty() || !is_number) {
      throw UsageError("--node needs --meet HOST:PORT, or MASTER_ADDR and MASTER_PORT");
    }
    text = fmt::format("{}:{}", variable("MASTER_ADDR"), std::stoi(port) + 1);
  }
  const std::optional<watch::Address> address = watch::parse_address(text);
  if (!address) {
    throw UsageError(fmt::format("--meet {}: expected a host and a port, such as node0:29600", text));
  }
  return *address;
}

std::string shared_token(const CommandLine& line) {
  std::string token = variable("ROLLCALL_TOKEN");
  if (!line.watch.token_file.empty()) {
    std::ifstream file(line.watch.token_file);
    if (!std::getline(file, token)) {
      throw UsageError(fmt::format("--token-file {}: there is no secret in it", line.watch.token_file));
    }
  }
  constexpr std::size_t shortest = 16;
  if (token.size() < shortest) {
    throw UsageError(
        "--node needs a secret of 16 characters or more that all nodes share: ROLLCALL_TOKEN, or "
        "--token-file");
  }
  return token;
}

watch::WatchOptions watch_options(const CommandLine& line) {
  watch::WatchOptions options;
  options.command = line.paths;
  options.records = line.record.records;
  if (options.command.empty()) {
    throw UsageError(
        "watch needs the command that starts the job: rollcall watch -- torchrun --nproc_per_node 4 "
        "train.py");
  }
  if (line.watch.is_node) {
    options.nodes = watch::NodeOptions{number_of_node(), meeting_place(line), shared_token(line)};
  }
  options.shows_row = !line.watch.no_row;
  if (line.watch.page_port >= 0) {
    options.page_port = static_cast<std::uint16_t>(line.watch.page_port);
  }
  if (!line.watch.after.empty()) {
    options.stall.after = at_least(100 * millisecond, scenario::parse_duration(line.watch.after),
                                   "--after " + line.watch.after, "must be at least 100ms");
  }
  return options;
}

constexpr std::int64_t page_covers_ns = 60 * second;

// Removes calls that completed before the page's time range begins.
void keep_last_minute(check::JobDump& job) {
  std::int64_t latest = 0;
  for (const check::RankDump& dump : job.ranks) {
    for (const check::DumpRecord& record : dump.records) {
      latest = std::max({latest, record.created_ns, record.completed_ns});
    }
  }
  for (check::RankDump& dump : job.ranks) {
    const std::size_t before = dump.records.size();
    std::erase_if(dump.records, [&](const check::DumpRecord& record) {
      return record.state == check::DumpRecord::State::completed &&
             std::max(record.created_ns, record.completed_ns) < latest - page_covers_ns;
    });
    dump.from_start = dump.from_start && dump.records.size() == before;
  }
}

// Judges everything that the rings hold.
std::string page_of_last_minute(const std::string& records) {
  traces::ReadResult read = traces::read_recordings({records});
  if (read.job.ranks.empty()) {
    return "<!doctype html><title>rollcall</title><p>No rank has begun.\n";
  }
  Diagnosis diagnosis = check::judge_dump(read.job);
  keep_last_minute(read.job);
  Report recorded = traces::report_of(read.job, diagnosis, "the job's last minute").report;
  std::ostringstream page;
  write_page({std::move(diagnosis), remarks_of(read.problems), std::move(recorded)}, page);
  return page.str();
}

}  // namespace

ExitCode watch_job(const CommandLine& line) {
  const watch::WatchOptions options = watch_options(line);
  std::string reports;
  const watch::WatchListener listener{
      [&](const watch::Answer& answer) {
        const std::string text = report_text(line, answer);
        reports += text;
        line.output.empty() ? say(text) : emit(line, reports);
      },
      [&](Duration after) {
        remark(fmt::format("rollcall: the job continued after {}", watch::elapsed_phrase(after)));
      },
      [&](const std::string& text) { remark("rollcall: " + text); },
      page_of_last_minute,
  };
  return static_cast<ExitCode>(watch::WatchedJob(options, listener).run());
}

}  // namespace rollcall::cli
