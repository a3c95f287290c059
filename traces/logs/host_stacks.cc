#include "traces/logs/host_stacks.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/diagnose/installed_code.h"
#include "traces/logs/lines.h"
#include "traces/logs/user_frame.h"

namespace rollcall::traces {

namespace {

using check::DumpFrame;
using check::LogFact;

constexpr std::string_view recent_first = "(most recent call first):";
constexpr std::string_view section = "=== Rank ";

// py-spy: `    main (train.py:12)`.
std::optional<DumpFrame> py_spy_frame(std::string_view line) {
  const std::string_view text = without_blanks(line);
  const std::size_t open = text.rfind(" (");
  const std::size_t colon = text.rfind(':');
  if (!line.starts_with(' ') || !text.ends_with(')') || open == std::string_view::npos ||
      colon == std::string_view::npos || colon < open) {
    return std::nullopt;
  }
  return DumpFrame{std::string(text.substr(0, open)), std::string(text.substr(open + 2, colon - open - 2)),
                   number_at(text.substr(colon + 1)).value_or(0)};
}

struct Thread {
  bool is_main = false;
  bool is_torn = false;           // it changed while it was read: its outer frames are missing
  std::vector<DumpFrame> frames;  // innermost first
  std::int64_t line = 0;
};

class StackReader {
 public:
  explicit StackReader(const LogStream& log) : lines_(log.lines), rank_(log.rank) {}

  std::vector<LogFact> read() {
    for (const auto& [number, line] : lines_) {
      if (line.starts_with(section)) {
        finish();
        rank_ = rank_after(line, section).value_or(-1);
      } else if (is_heading(line)) {
        Thread& thread = threads_.emplace_back();
        thread.is_main = contains(line, "MainThread");
        thread.line = number;
      } else if (!threads_.empty()) {
        add(line);
      }
    }
    finish();
    return std::move(facts_);
  }

  // After read().
  check::DumpStack& program() { return program_; }

 private:
  static bool is_heading(std::string_view line) {
    const bool names_thread = line.starts_with("Thread ") || line.starts_with("Current thread ");
    const bool is_py_spys = contains(line, " (active") || contains(line, " (idle");
    return names_thread && (contains(line, recent_first) || is_py_spys);
  }

  void add(std::string_view line) {
    if (contains(line, "<invalid frame>") || contains(line, ", line ??? in ")) {
      threads_.back().is_torn = true;
      return;
    }
    std::optional<DumpFrame> frame =
        frame_in(line, " in ");  // faulthandler: `  File "train.py", line 12 in main`
    frame = frame ? std::move(frame) : py_spy_frame(line);
    if (frame) {
      threads_.back().is_main = threads_.back().is_main || frame->function == "<module>";
      threads_.back().frames.push_back(*std::move(frame));
    }
  }

  // The program's own thread ends in "<module>", unless the stack is too deep. faulthandler lists that thread
  // last.
  Thread* own_thread() {
    auto main = std::find_if(threads_.rbegin(), threads_.rend(),
                             [](const Thread& thread) { return thread.is_main && !thread.frames.empty(); });
    if (main == threads_.rend() && !threads_.empty() && !threads_.back().frames.empty()) {
      main = threads_.rbegin();
    }
    return main == threads_.rend() ? nullptr : &*main;
  }

  // On a GPU, autograd runs hooks, and the calls in them, in a thread of its own, and the program's waits for it. That
  // thread was not started by Python.
  static bool is_autograds(const Thread& thread) {
    constexpr std::string_view starts[] = {"_bootstrap", "<module>"};
    return !thread.frames.empty() && !thread.is_main && !thread.is_torn &&
           std::ranges::find(starts, thread.frames.back().function) == std::end(starts);
  }

  static bool is_autograds_wait(const DumpFrame& frame) {
    return frame.function == "_engine_run_backward" ||
           (frame.function == "backward" && frame.file.ends_with("torch/autograd/__init__.py"));
  }

  // One stack of the program's thread and, if it waits for autograd's, of that one.
  void join_autograd(Thread& main) const {
    if (!is_autograds_wait(main.frames.front()) || std::ranges::count_if(threads_, is_autograds) != 1) {
      return;
    }
    const Thread& thread = *std::ranges::find_if(threads_, is_autograds);
    main.frames.insert(main.frames.begin(), thread.frames.begin(), thread.frames.end());
  }

  void finish() {
    Thread* const main = own_thread();
    if (main != nullptr) {
      join_autograd(*main);
      program_ = main->frames;
    }
    if (main != nullptr && rank_ >= 0) {
      LogFact& fact = add_fact(facts_, LogFact::Kind::stack, RankSet{rank_}, main->line);
      fact.text = main->frames.front().function;
      for (const DumpFrame& frame : main->frames) {
        fact.op = is_c10d(frame) ? frame.function : fact.op;  // the outermost is the program's call
        if (fact.op.empty() && is_autograds_wait(frame)) {
          fact.op = "backward";
        }
        if (fact.site.empty() && is_users(frame)) {
          fact.site = fmt::format("{}:{}", frame.file, frame.line);
        }
        fact.frames.push_back(fmt::format("{} at {}:{}", frame.function,
                                          check::without_packages_folder(frame.file), frame.line));
      }
      std::ranges::reverse(fact.frames);
      if (main->is_torn) {
        fact.frames.clear();  // they would be compared from the outermost on
      }
    }
    threads_.clear();
  }

  const std::vector<LogLine>& lines_;
  Rank rank_;
  check::DumpStack program_;
  std::vector<Thread> threads_;
  std::vector<LogFact> facts_;
};

}  // namespace

bool looks_like_host_stacks(std::string_view bytes) {
  const auto has = [bytes](std::string_view text) { return contains(bytes, text); };
  const bool is_py_spys = bytes.starts_with("Process ") || has("\nProcess ");
  const bool has_no_title = has("): \"MainThread\"");  // people copy py-spy's lines without the first one
  return has(recent_first) || has_no_title || (is_py_spys && has("\nThread "));
}

check::DumpStack program_stack(std::string_view bytes) {
  const LogStream log = log_of_one(bytes, -1);
  StackReader reader(log);
  reader.read();
  return std::move(reader.program());
}

std::vector<LogFact> read_host_stacks(const LogStream& log) { return StackReader(log).read(); }

}  // namespace rollcall::traces
