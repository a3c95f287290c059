#include "traces/logs/elastic_log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "traces/logs/lines.h"
#include "traces/logs/python_errors.h"
#include "traces/values/value_access.h"

namespace rollcall::traces {

namespace {

using check::LogFact;

constexpr std::string_view root_cause = "Root Cause (first observed failure):";
constexpr std::string_view failures = "Failures:";
constexpr std::string_view sruns = "srun: error: ";
constexpr std::string_view mpiruns = "noticed that process rank ";
constexpr std::string_view lightnings = "] Child process with PID ";
constexpr std::string_view torchruns = "failed (exitcode: ";
constexpr std::string_view deepspeeds = "] exits with return code = ";
constexpr std::string_view died = "died with <Signals.";
constexpr std::string_view torch_launchs = "' died with <Signals.";
constexpr std::string_view told_to_end = " death signal, shutting down workers";  // torchrun's agent
constexpr std::string_view slurms = "slurmstepd: error: *** ";  // "... STEP 7.0 ON n1 CANCELLED AT ..."

// "time      : 2024-09-11_09:17:31", in seconds since 1970; 0 if it is something else.
std::int64_t time_in(std::string_view text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  const std::string line(text);
  if (std::sscanf(line.c_str(), "time : %4d-%2u-%2u_%2d:%2d:%2d", &year, &month, &day, &hour, &minute,
                  &second) != 6) {
    return 0;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) {
    return 0;
  }
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

// How a launcher says that a process failed.
struct End {
  std::string_view mark;
  std::string_view before_rank;
  std::string_view before_text;
  bool is_local = false;  // the rank is one on its machine
};
constexpr std::array<End, 6> ends = {{{sruns, " task", ": "},
                                      {mpiruns, mpiruns, " exited on "},
                                      {lightnings, "[rank: ", " terminated with "},
                                      {torchruns, "local_rank: ", torchruns, true},
                                      {deepspeeds, "--local_rank=", deepspeeds, true},
                                      {torch_launchs, "--local_rank=", died, true}}};

// "failed (exitcode: -9) local_rank: 3 (pid: 81) of binary: ..." is "exit code -9 ", like in torchrun's summary.
std::string text_of_end(std::string_view text) {
  for (const std::string_view before : {torchruns, deepspeeds}) {
    if (text.starts_with(before)) {
      const std::string_view code = text.substr(before.size());
      return fmt::format("exit code {} ", code.substr(0, code.find_first_of(") ")));
    }
  }
  if (text.starts_with(died)) {
    return fmt::format("died with {}", text.substr(died.size(), text.find(':') - died.size()));
  }
  return std::string(without_blanks(text));
}

// The ranks of "task 14: " or "tasks 8-13,15: ".
std::optional<RankSet> tasks_in(std::string_view line) {
  const std::size_t word = line.find(" task");
  const std::size_t begin = word == line.npos ? word : line.find(' ', word + 1);
  const std::size_t colon = begin == line.npos ? begin : line.find(": ", begin);
  if (colon == line.npos) {
    return std::nullopt;
  }
  RankSet ranks;
  for (std::string_view rest = line.substr(begin + 1, colon - begin - 1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::optional<Rank> first = rank_at(part);
    const std::size_t dash = part.find('-');
    const std::optional<Rank> last = dash == part.npos ? first : rank_at(part.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return std::nullopt;
    }
    ranks.insert(RankSet::range(*first, *last));
  }
  return ranks.empty() ? std::nullopt : std::optional(std::move(ranks));
}

// What ended a job from outside; empty if the line does not say that.
std::string stop_in(std::string_view line) {
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 3> signals = {
      {{1, "SIGHUP"}, {2, "SIGINT"}, {15, "SIGTERM"}}};
  if (const std::size_t place = line.find(told_to_end); place != line.npos) {
    const std::size_t blank = line.substr(0, place).rfind(' ');
    const std::optional<std::int64_t> number = number_at(line.substr(blank == line.npos ? 0 : blank + 1));
    const auto known =
        std::ranges::find(signals, number.value_or(0), &std::pair<std::int64_t, std::string_view>::first);
    return fmt::format("torchrun received {}",
                       known == signals.end() ? fmt::format("signal {}", number.value_or(0)) : known->second);
  }
  const std::size_t slurm = line.find(slurms);
  const std::size_t cancelled = slurm == line.npos ? slurm : line.find("CANCELLED", slurm);
  if (cancelled == line.npos) {
    return "";
  }
  const std::size_t due = line.find(" DUE TO ", cancelled);
  const std::string_view why = due == line.npos ? "" : line.substr(due, line.find(" ***", due) - due);
  return fmt::format("Slurm: CANCELLED{}", why);
}

// The error of a process that failed. If it is about another rank, that one failed first.
void set_error(std::string_view text, LogFact& fact) {
  const std::optional<LogFact::Kind> kind = kind_of_error(text);
  fact.kind = kind && *kind != LogFact::Kind::raised ? *kind : fact.kind;
  fact.text = text;
}

}  // namespace

// {"message": {"message": "ValueError: ...", "extraInfo": {"py_callstack": "Traceback ...", "timestamp": "..."}}}
bool looks_like_error_file(const Value& value) {
  const Value* message = find(value, "message");
  return message != nullptr && find(*message, "extraInfo") != nullptr;
}

std::vector<LogFact> read_error_file(const Value& value, Rank rank) {
  const Value& message = *find(value, "message");
  const Value* extra = find(message, "extraInfo");
  const std::string_view stack = text_or_empty(find(*extra, "py_callstack"));
  std::vector<LogFact> facts = read_python_errors(log_of_one(stack, rank));
  for (LogFact& fact : facts) {
    fact.line = 0;
  }
  const std::string_view text = text_or_empty(find(message, "message"));
  const auto kind = kind_of_error(text);
  if (facts.empty() && kind && rank >= 0 && !text.empty()) {
    add_fact(facts, *kind, RankSet{rank}).text = text;
  }
  return facts;
}

bool looks_like_elastic_summary(std::string_view bytes) { return contains(bytes, root_cause); }

// "Failures:\n[1]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 1)\n  traceback : ..." for ranks that
// failed later, then "Root Cause (first observed failure):\n[0]:\n" and the same of the first. The last line of a
// traceback is the error; its other lines are indented further.
std::vector<LogFact> read_elastic_summary(const LogStream& log) {
  std::vector<LogFact> facts;
  bool is_root = false;
  bool is_inside = false;
  bool is_in_traceback = false;
  const auto begin = [&](std::int64_t number) {
    is_in_traceback = false;
    add_fact(facts, is_root ? LogFact::Kind::first_to_fail : LogFact::Kind::raised, {}, number);
  };
  for (const auto& [number, line] : log.lines) {
    const std::string_view text = without_blanks(line);
    if (text.starts_with(root_cause) || text.starts_with(failures)) {
      is_inside = true;
      is_root = text.starts_with(root_cause);
      begin(number);
    } else if (is_inside && text.starts_with("===")) {
      is_inside = false;
    } else if (is_inside && text.starts_with("time ")) {
      if (!is_root) {
        begin(number);
      }
      facts.back().count = time_in(text);
    } else if (is_inside && is_in_traceback) {
      if (line.starts_with("  ") && !line.starts_with("   ") && !text.empty()) {
        set_error(text, facts.back());
      }
    } else if (is_inside && text.starts_with("rank") && contains(text, ":")) {
      if (const auto rank = rank_after(text, ": ")) {
        facts.back().ranks = RankSet{*rank};
      }
    } else if (is_inside && text.starts_with("exitcode")) {
      const std::string_view code =
          without_blanks(text.substr(std::min(text.find(':'), text.size() - 1) + 1));
      if (is_root) {
        facts.back().text = fmt::format("exit code {}", code);
      } else if (code.starts_with("-15 ")) {
        facts.back().kind = LogFact::Kind::outlived;
        facts.back().text = code;
      }
    }
    is_in_traceback = is_in_traceback || (is_inside && text.starts_with("traceback"));
  }
  const bool has_root = std::ranges::any_of(
      facts, [](const LogFact& fact) { return fact.kind == LogFact::Kind::first_to_fail; });
  std::erase_if(facts, [has_root](const LogFact& fact) {
    const bool is_later = has_root && fact.kind == LogFact::Kind::raised;  // it may follow from the first
    return fact.ranks.empty() || fact.text.empty() || is_later;
  });
  return facts;
}

bool looks_like_launcher_log(std::string_view bytes) {
  const auto has = [bytes](std::string_view mark) { return contains(bytes, mark); };
  return has(told_to_end) || has(slurms) || std::ranges::any_of(ends, has, &End::mark);
}

// "srun: error: node3: task 3: Segmentation fault", "mpirun noticed that process rank 3 with PID 71 on node n exited on
// signal 9 (Killed).", "[rank: 1] Child process with PID 42 terminated with code -11." The others end because of it:
// srun lists them together, "tasks 0-2: Exited with exit code 1"; if it lists nobody before, no rank is the first.
// "['python', '--local_rank=1', ...] exits with return
// code = -11", "Command '[..., '--local_rank=7']' died with <Signals.SIGSEGV: 11>".
std::vector<LogFact> read_launcher_log(const LogStream& log) {
  std::vector<LogFact> facts;
  const bool has_summary =
      std::ranges::any_of(log.lines, [](const LogLine& line) { return contains(line.text, root_cause); });
  for (const auto& [number, line] : log.lines) {
    for (const End& end : ends) {
      if (end.mark == torchruns && has_summary) {
        continue;  // which says more
      }
      const std::size_t place = contains(line, end.mark) ? line.find(end.before_rank) : line.npos;
      const std::size_t after_rank = end.is_local ? 0 : place + end.before_rank.size();
      const std::size_t text = place == line.npos ? place : line.find(end.before_text, after_rank);
      const std::optional<Rank> rank = place == line.npos ? std::nullopt : rank_after(line, end.before_rank);
      const std::optional<RankSet> ranks = end.mark == sruns ? tasks_in(line)
                                           : rank            ? std::optional(RankSet{*rank})
                                                             : std::nullopt;
      if (!ranks || text == line.npos || contains(line.substr(text), "Terminated")) {
        continue;
      }
      LogFact& fact = add_fact(facts, LogFact::Kind::first_to_fail, *ranks, number);
      fact.text = text_of_end(line.substr(text + (end.mark == sruns ? 2 : 0)));
      fact.is_local = end.is_local;
    }
  }
  // The process that a signal or the memory limit ended comes before those that answered its end with an exit code.
  const auto is_answer = [](const LogFact& fact) { return fact.text.starts_with("Exited with exit code"); };
  if (!std::ranges::all_of(facts, is_answer)) {
    std::erase_if(facts, is_answer);
  }
  if (facts.size() > 1 && facts.front().ranks.size() > 1) {
    for (const LogFact& fact : facts) {
      facts.front().ranks.insert(fact.ranks);
    }
  }
  if (!facts.empty()) {
    facts.erase(facts.begin() + 1, facts.end());
    return facts;
  }
  for (const auto& [number, line] : log.lines) {
    if (std::string stop = stop_in(line); !stop.empty()) {
      add_fact(facts, LogFact::Kind::stopped_job, {}, number).text = std::move(stop);
      break;
    }
  }
  return facts;
}

}  // namespace rollcall::traces
