#include "scenarios/cli/cli.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <system_error>
#include <thread>

#include <fmt/core.h>
#include <unistd.h>

#include "scenarios/cli/output_files.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/terminal/progress.h"
#include "scenarios/program/units.h"
#include "scenarios/test/collect.h"
#include "scenarios/test/failure_store.h"
#include "scenarios/test/run_tests.h"
#include "scenarios/test/state_folder.h"
#include "viz/base/write_file.h"
#include "viz/ci/github.h"
#include "viz/ci/test_json.h"
#include "viz/ci/test_text.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;
using Status = viz::TestOutcome::Status;

volatile std::sig_atomic_t interrupted = 0;
void (*handler_before)(int) = SIG_DFL;  // the program's usual signal handler

// A second signal ends the program at once: a user who sends two means it.
void on_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, handler_before);
}

// Handles Ctrl-C, and the signal that CI sends when a job is canceled. Waiting system calls must return.
void listen_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  struct sigaction old {};
  ::sigaction(SIGINT, &action, &old);
  ::sigaction(SIGTERM, &action, nullptr);
  handler_before = old.sa_handler;
}

scenario::KeywordExpression expression(std::string_view option, const std::string& text) try {
  return scenario::KeywordExpression(text);
} catch (const scenario::BadExpression& error) {
  throw UsageError(fmt::format("{}: {}", option, error.what()));
}

struct Chosen {
  std::vector<scenario::Collected> cases;
  std::size_t deselected = 0;
};

Chosen choose(const CommandLine& line) {
  const scenario::KeywordExpression keywords = expression("-k", line.test.keywords);
  const scenario::KeywordExpression tags = expression("-m", line.test.tags);
  const std::vector<scenario::Collected> all = scenario::collect(line.paths);
  const std::size_t count = all.size();
  scenario::Selection selection{keywords, tags, {}};
  std::vector<scenario::Collected> cases = scenario::select(all, selection);
  if (line.test.last_failed) {
    selection.addresses = scenario::last_failed();
    std::vector<scenario::Collected> failed = scenario::select(cases, selection);
    if (!failed.empty()) {  // like pytest: if none of them failed, all are run
      cases = std::move(failed);
    }
  }
  return {cases, count - cases.size()};
}

// Cases with a failure that `explore` has found come first.
void put_known_first(const std::vector<scenario::StoredFailure>& known,
                     std::vector<scenario::Collected>& cases) {
  std::ranges::stable_partition(cases, [&known](const scenario::Collected& each) {
    return std::ranges::any_of(known, [&each](const auto& failure) { return failure.is_of(each.one); });
  });
}

ExitCode nothing_selected(const CommandLine& line, std::size_t deselected) {
  const std::string where = line.paths.empty() && !fs::is_directory(scenario::default_folder)
                                ? "there is no directory 'scenarios' here; name a file or a directory"
                            : deselected == 1 ? "the only scenario does not match -k and -m"
                            : deselected > 0
                                ? fmt::format("none of {} scenarios matches -k and -m", deselected)
                                : "found no scenario files";
  remark("rollcall: nothing selected: " + where);
  return ExitCode::nothing_selected;
}

ExitCode list_cases(const CommandLine& line, const Chosen& chosen) {
  std::string text;
  bool all_readable = true;
  for (const scenario::Collected& each : chosen.cases) {
    if (each.unreadable.empty()) {
      text += viz::printable(each.one.address()) + "\n";
    } else {
      remark(each.unreadable);
      all_readable = false;
    }
  }
  emit(line, text);
  return all_readable ? ExitCode::as_expected : ExitCode::invalid;
}

scenario::TestOptions options_of(const CommandLine& line, const std::vector<ReportFile>& reports) {
  const TestArguments& test = line.test;
  scenario::TestOptions options;
  options.judge = {.seed = line.seed,
                   .golden = test.golden,
                   .update_golden = test.update_golden,
                   .timeline = wants_timeline(reports),
                   .page = !file_of("html", reports).empty(),
                   .color = wants_color(line),
                   .verbose = line.detail == viz::TextStyle::Detail::verbose};
  options.limits.jobs =
      static_cast<int>(test.jobs > 0 ? test.jobs : std::max(1U, std::thread::hardware_concurrency()));
  constexpr const char* too_small = "must be greater than 0";
  options.limits.time = at_least(1, scenario::parse_duration(test.timeout), "--timeout", too_small);
  options.limits.memory_bytes = at_least(1, scenario::parse_bytes(test.memory), "--memory", too_small);
  options.failures_max = test.stop_at_first ? 1 : test.failures_max;
  return options;
}

// Writes the page of each scenario to a folder next to the overview as soon as it is complete, because keeping all
// pages would take much memory.
class Pages {
 public:
  explicit Pages(const fs::path& path) {
    if (!path.empty()) {
      folder_ = path.parent_path() / (path.stem().string() + "_files");
      std::error_code unable;  // then write_file says why
      fs::create_directories(folder_, unable);
    }
  }

  void take(viz::TestOutcome& outcome) {
    if (outcome.page.empty()) {
      return;
    }
    const std::string name = fmt::format("{}.html", ++count_);
    try {
      viz::write_file((folder_ / name).string(), [&](std::ostream& out) { out << outcome.page; });
      outcome.link = fmt::format("{}/{}", folder_.filename().string(), name);
    } catch (const viz::OutputError& error) {
      remark(fmt::format("rollcall: error: {}", error.what()));
      wrote_all_ = false;
    }
    outcome.page.clear();
  }

  bool wrote_all() const { return wrote_all_; }

 private:
  fs::path folder_;
  std::size_t count_ = 0;
  bool wrote_all_ = true;
};

// Prints plain lines for logs; on a terminal one changing line, and the others with -v.
class Printer {
 public:
  Printer(const CommandLine& line, std::size_t count)
      : line_(line),
        progress_(line.progress_wish(), "starting"),
        count_(count),
        is_quiet_(line.format == Format::json || line.detail == viz::TextStyle::Detail::quiet),
        lists_all_(!is_shown(line) || line.detail == viz::TextStyle::Detail::verbose),
        style_{line.detail, wants_color(line)} {}

  void moved(const scenario::Case& newest, std::size_t done) {
    const std::string failures = failed_ == 0 ? "" : fmt::format(", {} not as expected", failed_);
    progress_.say(fmt::format("[{}/{}{}] {}", done, count_, failures, newest.address()));
  }

  void finished(const viz::TestOutcome& outcome) {
    const bool passed = outcome.status == Status::passed;
    failed_ += passed ? 0 : 1;
    if (!is_quiet_ && (lists_all_ || !passed)) {
      print(viz::outcome_line(outcome, style_));
    }
  }

  void summary(const viz::TestRun& run) {
    for (const viz::TestOutcome& outcome : run.outcomes) {
      if (!is_quiet_) {
        print(viz::failure_text(outcome, style_.color));
      }
    }
    if (line_.format == Format::text) {
      print(viz::summary_text(run, style_.color));
    } else {
      print(viz::test_json(run));
    }
    if (!line_.output.empty()) {
      emit(line_, text_);
    }
  }

 private:
  static bool is_shown(const CommandLine& line) {
    return ::isatty(STDERR_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && line.output.empty() &&
           line.detail != viz::TextStyle::Detail::quiet;
  }

  void print(const std::string& text) {
    progress_.clear();
    if (line_.output.empty()) {
      viz::write_stdout(viz::without_commands(text));
    } else {
      text_ += text;
    }
  }

  const CommandLine& line_;
  Progress progress_;
  std::size_t count_;
  bool is_quiet_;
  bool lists_all_;
  viz::TextStyle style_;
  std::size_t failed_ = 0;
  std::string text_;  // for --output, which is written at once
};

// GitHub shows the contents of this file on the job's page. Other steps may have written to it before.
bool append_step_summary(const viz::TestRun& run) {
  const char* file = std::getenv("GITHUB_STEP_SUMMARY");
  if (file == nullptr || *file == '\0') {
    return true;
  }
  std::ofstream out(file, std::ios::binary | std::ios::app);
  out << viz::markdown_summary(run) << std::flush;
  if (!out) {
    remark(fmt::format("rollcall: error: cannot write '{}', the file of GITHUB_STEP_SUMMARY", file));
  }
  return static_cast<bool>(out);
}

ExitCode verdict_of(const viz::TestRun& run) {
  return run.interrupted                  ? ExitCode::interrupted
         : run.count(Status::crashed) > 0 ? ExitCode::internal_error
         : run.count(Status::invalid) > 0 ? ExitCode::invalid
         : run.count(Status::failed) > 0  ? ExitCode::differs
                                          : ExitCode::as_expected;
}

// A file that cannot be written is as bad as a file that cannot be read.
ExitCode worse(ExitCode code, bool wrote_all) {
  const bool outranks = code == ExitCode::as_expected || code == ExitCode::differs;
  return !wrote_all && outranks ? ExitCode::invalid : code;
}

ExitCode run_chosen(const CommandLine& line, Chosen chosen, const std::vector<ReportFile>& reports) {
  scenario::TestOptions options = options_of(line, reports);
  options.judge.known = scenario::stored_failures();
  put_known_first(options.judge.known, chosen.cases);
  Pages pages(file_of("html", reports));
  Printer printer(line, chosen.cases.size());
  const scenario::TestEvents events{
      .finished =
          [&](viz::TestOutcome& outcome) {
            pages.take(outcome);
            printer.finished(outcome);
          },
      .moved = [&](const scenario::Case& newest, std::size_t done) { printer.moved(newest, done); }};
  listen_for_interrupts();
  viz::TestRun run = scenario::run_tests(chosen.cases, options, events, interrupted);
  run.deselected = chosen.deselected;
  run.command = line.test.command;
  bool wrote_all = write_all_reports(line, reports, writers_of(run)) && pages.wrote_all();
  wrote_all = append_step_summary(run) && wrote_all;
  try {
    scenario::remember_failures(run);
  } catch (const viz::OutputError& error) {
    remark(fmt::format("rollcall: cannot save the failures for --lf: {}", error.what()));
  }
  printer.summary(run);
  return worse(verdict_of(run), wrote_all);
}

}  // namespace

ExitCode test_scenarios(const CommandLine& line) {
  const std::vector<ReportFile> reports = report_files(line, run_kinds());
  require_folders(line, reports);
  const Chosen chosen = choose(line);
  if (chosen.cases.empty()) {
    return nothing_selected(line, chosen.deselected);
  }
  return line.test.list ? list_cases(line, chosen) : run_chosen(line, chosen, reports);
}

}  // namespace rollcall::cli
