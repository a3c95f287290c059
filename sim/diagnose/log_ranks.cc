#include "sim/diagnose/log_ranks.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "sim/diagnose/error_advice.h"
#include "sim/diagnose/log_judge.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

const LogFact* first_of(const std::vector<LogFact>& facts, LogFact::Kind kind) {
  const auto place = std::ranges::find(facts, kind, &LogFact::kind);
  return place == facts.end() ? nullptr : &*place;
}

RankSet ranks_with(const std::vector<LogFact>& facts, LogFact::Kind kind) {
  return ranks_where(facts, [kind](const LogFact& fact) { return fact.kind == kind; });
}

RankSet ranks_with(const std::vector<LogFact>& facts, std::initializer_list<LogFact::Kind> kinds) {
  return ranks_where(
      facts, [kinds](const LogFact& fact) { return std::ranges::find(kinds, fact.kind) != kinds.end(); });
}

RankSet ranks_in_calls(const std::vector<LogFact>& facts) {
  return ranks_where(facts, &LogFact::is_stack_in_call);
}

RankSet ranks_in_no_call(const std::vector<LogFact>& facts) {
  return difference(ranks_with(facts, LogFact::Kind::stack), ranks_in_calls(facts));
}

RankSet alive_ranks(const std::vector<LogFact>& facts) {
  using Kind = LogFact::Kind;
  return difference(
      ranks_with(facts, {Kind::gave_up, Kind::lost_peer, Kind::stack}),
      ranks_with(facts, {Kind::raised, Kind::ended, Kind::exited, Kind::left, Kind::first_to_fail}));
}

namespace {

using Kind = LogFact::Kind;

// True for how a process ended, in a launcher's words, and false for an error of the program.
bool says_end(const std::string& text) {
  constexpr std::array<std::string_view, 8> words = {
      "exit code", "died with ",    "signal ", "Segmentation fault",
      "Killed",    "Out Of Memory", "Aborted", "Bus error"};
  return std::ranges::any_of(words, [&text](std::string_view word) { return text.starts_with(word); });
}

// The ranks that launchers saw fail first, unless that follows from another's fault: when a call has timed out, a
// watchdog aborts its own process (SIGABRT) or the error ends the program (1), and a launcher ends the others
// (SIGTERM).
std::vector<const LogFact*> first_to_fail(const std::vector<LogFact>& facts, const RankSet& stopped) {
  std::vector<const LogFact*> found;
  for (const LogFact& fact : facts) {
    const bool was_ended = fact.text.starts_with("exit code -6 ") || fact.text.starts_with("exit code 1 ") ||
                           fact.text.starts_with("exit code -15 ");
    const bool counts = fact.kind == Kind::first_to_fail && !(was_ended && log_shows_timeout(facts));
    if (counts && !stopped.contains(fact.ranks)) {
      found.push_back(&fact);
    }
  }
  return found;
}

// Launchers of several nodes each see a first rank to fail. Their clocks tell which of them was the first, unless the
// times are so close that the clocks may differ by as much. A process that a signal has killed does not follow from
// another's exit.
void keep_earliest(std::vector<const LogFact*>& roots) {
  constexpr std::int64_t clocks_differ_max = 2;  // seconds
  const auto earliest = std::ranges::min_element(roots, {}, &LogFact::count);
  if (earliest != roots.end() && (*earliest)->count > 0) {
    const std::int64_t last = (*earliest)->count + clocks_differ_max;
    std::erase_if(roots, [last](const LogFact* root) { return root->count > last; });
  }
  const auto was_killed = [](const LogFact* root) { return root->text.starts_with("exit code -"); };
  const auto is_answer = [](const LogFact* root) { return root->text.starts_with("exit code 1 "); };
  if (std::ranges::any_of(roots, was_killed)) {
    std::erase_if(roots, is_answer);
  }
}

RankSet ranks_of(const std::vector<const LogFact*>& facts) {
  RankSet ranks;
  for (const LogFact* fact : facts) {
    ranks.insert(fact->ranks);
  }
  return ranks;
}

// The first fact of this kind about one of the ranks.
const LogFact* first_about(const std::vector<LogFact>& facts, Kind kind, const RankSet& ranks) {
  const auto place = std::ranges::find_if(facts, [&](const LogFact& fact) {
    return fact.kind == kind && !fact.ranks.empty() && ranks.contains(fact.ranks);
  });
  return place == facts.end() ? nullptr : &*place;
}

// True if a line that passes the test comes before that of `fact` in the same file.
template <typename Test>
bool comes_after(const std::vector<LogFact>& facts, const LogFact& fact, const Test& test) {
  return std::ranges::any_of(facts, [&](const LogFact& other) {
    return other.file == fact.file && other.line < fact.line && test(other);
  });
}

// Without ranks whose error came after a call of theirs had timed out: it is about the end of that call.
RankSet raised_first(const std::vector<LogFact>& facts) {
  return ranks_where(facts, [&facts](const LogFact& error) {
    return error.kind == Kind::raised && !comes_after(facts, error, [&error](const LogFact& late) {
             return late.kind == Kind::timed_out && late.ranks == error.ranks;
           });
  });
}

}  // namespace

Diagnosis undecided() {
  Diagnosis diagnosis = diagnosis_of(FindingKind::no_fault, Confidence::low, {});
  diagnosis.may_be_healthy = true;
  return diagnosis;
}

bool is_message(const std::string& op) {
  constexpr std::array<std::string_view, 7> messages = {
      "send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list"};
  return std::ranges::find(messages, op) != messages.end();
}

bool is_about_groups(const std::string& op) {
  constexpr std::array<std::string_view, 5> calls = {"new_group", "split_group", "new_subgroups",
                                                     "new_subgroups_by_enumeration", "init_process_group"};
  return std::ranges::find(calls, op) != calls.end();
}

std::string error_evidence(const LogFact& error) {
  return fmt::format("{}: {}{}", error.place(), error.text,
                     error.site.empty() ? "" : fmt::format(" (at {})", error.site));
}

void set_op(const std::string& op, const RankSet& waiting, const RankSet& missing, Diagnosis& diagnosis) {
  Place place;
  place.call.op = op.empty() ? "a call" : op;
  place.waiting = waiting;
  place.missing = missing;
  diagnosis.finding.at = std::move(place);
  diagnosis.is_message = is_message(op);
}

// An error of its own ends a rank, and that ends the others.
std::optional<Diagnosis> judge_errors(const std::vector<LogFact>& facts) {
  RankSet raised = raised_first(facts);
  if (const RankSet own = difference(raised, ranks_that_compared(facts)); !own.empty()) {
    raised = own;
  }
  const RankSet victims = ranks_with(facts, {Kind::lost_peer, Kind::gave_up, Kind::timed_out});
  // By calls that differ, or by the wait for others.
  RankSet stopped =
      ranks_with(facts, {Kind::aborted, Kind::truncated, Kind::fingerprint, Kind::named_missing});
  stopped.insert(victims);
  std::vector<const LogFact*> first = first_to_fail(facts, stopped);
  const RankSet of_launchers = ranks_of(first);
  keep_earliest(first);
  const RankSet roots = difference(ranks_of(first), stopped);
  if (raised.empty() && roots.empty()) {
    return std::nullopt;
  }
  const LogFact* error = first_about(facts, Kind::raised, raised);
  const LogFact* root = first_about(facts, Kind::first_to_fail, roots);
  const bool tie = raised.empty() && roots.size() > 1;
  RankSet culprits = raised.empty() ? roots : raised;
  // DDP compares every rank's parameters with those of rank 0. If most ranks differ from it, rank 0 is the odd one.
  const bool compares = error != nullptr && error->text.find("in process 0") != std::string::npos;
  if (compares && 2 * raised.size() > ranks_with(facts, Kind::wrote).size() && raised.size() > 1) {
    culprits = {0};
  }
  Diagnosis diagnosis = diagnosis_of(compares ? FindingKind::size_mismatch : FindingKind::crashed_rank,
                                     tie ? Confidence::low : Confidence::medium, culprits);
  diagnosis.finding.tie = tie;
  const LogFact& shown = error != nullptr ? *error : *root;
  if (shown.is_local) {
    diagnosis.confidence = Confidence::low;
  }
  if (says_end(shown.text)) {
    diagnosis.finding.headline =
        fmt::format("the {} of {} failed first{}", is_plural(culprits) ? "processes" : "process",
                    ranks_phrase(culprits), is_plural(culprits) ? " on their machines" : "");
    diagnosis.finding.advice = advice_on_end(shown.text);
  } else if (tie) {
    diagnosis.finding.headline = fmt::format("nothing says which of {} failed first", ranks_phrase(culprits));
    diagnosis.finding.advice =
        "read what each of them printed: the earliest error is the cause of the others";
  } else {
    diagnosis.finding.headline =
        fmt::format("{} failed with {}", ranks_phrase(culprits),
                    is_plural(culprits) ? "errors of their own" : "an error of its own");
    diagnosis.finding.advice = advice_on_error(shown.text);
  }
  diagnosis.finding.cause = shown.text;
  if (error != nullptr) {
    diagnosis.evidence.push_back(error_evidence(*error));
  }
  if (root != nullptr && root->ranks == culprits) {
    diagnosis.evidence.push_back(
        fmt::format("{}: the launcher {}: {}", root->place(),
                    root->ranks.size() > 1 ? "names them together" : "saw it fail first", root->text));
    if (const RankSet later = difference(of_launchers, roots); !later.empty() && !tie) {
      diagnosis.evidence.push_back(fmt::format(
          "another launcher saw {} fail first on its machine: that was later, or follows from this",
          ranks_phrase(later)));
    }
  }
  if (shown.is_local) {
    diagnosis.evidence.push_back(fmt::format(
        "{}: the launcher counts ranks on its machine: in a job of several machines, it is another rank",
        shown.place()));
  }
  if (error == nullptr) {
    if (const LogFact* unplaced = first_of(facts, Kind::unplaced)) {
      diagnosis.evidence.push_back(error_evidence(*unplaced) + ", of a rank that the log does not name");
    }
  }
  if (const RankSet others = difference(victims, culprits); !others.empty()) {
    diagnosis.evidence.push_back(fmt::format("{} only that a peer is gone, or did not arrive",
                                             with_verb(others, "reports", "report")));
  }
  return diagnosis;
}

std::optional<Diagnosis> judge_logged_errors(const std::vector<LogFact>& facts) {
  const LogFact* error = first_of(facts, Kind::logged);
  if (error == nullptr || log_shows_failure(facts)) {  // then something else went wrong, too
    return std::nullopt;
  }
  const std::string who = ranks_phrase(ranks_with(facts, Kind::logged));
  Diagnosis diagnosis = undecided();
  diagnosis.finding.headline =
      fmt::format("{} logged an error and went on; nothing else here shows a fault", who);
  diagnosis.finding.cause = error->text;
  diagnosis.evidence.push_back(error_evidence(*error));
  diagnosis.would_settle.push_back(
      fmt::format("a dump or a stack of {}: other threads may write while the program has ended", who));
  return diagnosis;
}

std::optional<Diagnosis> judge_nccl_failures(const std::vector<LogFact>& facts) {
  const LogFact* failure = first_of(facts, Kind::nccl_failed);
  if (failure == nullptr) {
    return std::nullopt;
  }
  Diagnosis diagnosis = undecided();
  diagnosis.finding.headline = "a call inside NCCL failed, and its line does not name a rank";
  diagnosis.finding.cause = failure->text;
  diagnosis.finding.advice = advice_on_nccl_failure(failure->text);
  diagnosis.evidence.push_back(error_evidence(*failure));
  diagnosis.would_settle.push_back(
      "the lines of all hosts, by time: the first is where it began (NCCL_DEBUG=WARN, "
      "NCCL_DEBUG_FILE=nccl.%h.%p)");
  return diagnosis;
}

std::optional<Diagnosis> judge_unplaced_errors(const std::vector<LogFact>& facts) {
  const LogFact* own = first_of(facts, Kind::unplaced);
  const LogFact* error = own != nullptr ? own : first_of(facts, Kind::unplaced_loss);
  if (error == nullptr) {
    return std::nullopt;
  }
  Diagnosis diagnosis = undecided();
  diagnosis.finding.headline = "a rank that the log does not name logged an error";
  diagnosis.finding.cause = error->text;
  diagnosis.evidence.push_back(error_evidence(*error));
  diagnosis.would_settle.push_back(
      "a log of each rank in a file of its own (torchrun --log-dir DIR --redirects 3), or its number before "
      "each line");
  return diagnosis;
}

namespace {

constexpr const char* advice_for_early_exit =
    "give every rank the same number of iterations, or wrap the loop in Join";

// Without ranks whose programs ended after a call had timed out somewhere: they follow from that.
RankSet left_first(const std::vector<LogFact>& facts) {
  const auto has_timed_out = [](const LogFact& late) {
    return late.kind == Kind::timed_out || late.kind == Kind::told_of_timeout;
  };
  return ranks_where(facts, [&](const LogFact& left) {
    return left.kind == Kind::left && !comes_after(facts, left, has_timed_out);
  });
}

// All programs end some day. One that ended while others waited is missing.
std::optional<Diagnosis> judge_programs_that_ended(const std::vector<LogFact>& facts) {
  const RankSet victims =
      ranks_with(facts, {Kind::raised, Kind::lost_peer, Kind::gave_up, Kind::timed_out, Kind::truncated});
  const RankSet left = difference(left_first(facts), victims);
  RankSet waiting = victims;
  waiting.insert(difference(alive_ranks(facts), left));
  if (left.empty() || waiting.empty()) {
    return std::nullopt;
  }
  Diagnosis diagnosis = diagnosis_of(FindingKind::early_exit, Confidence::medium, left);
  diagnosis.finding.headline = fmt::format(
      "the {} of {} ended, and {} for {}", is_plural(left) ? "programs" : "program", ranks_phrase(left),
      with_verb(waiting, "waited", "waited"), is_plural(left) ? "them" : "it");
  diagnosis.finding.cause =
      fmt::format("{} reached the end of {}, while {} made calls", ranks_phrase(left),
                  is_plural(left) ? "their programs" : "its program", ranks_phrase(waiting));
  diagnosis.finding.advice = advice_for_early_exit;
  diagnosis.evidence.push_back(
      fmt::format("{}: torch destroys the groups of {}, because its program has ended",
                  first_of(facts, Kind::left)->place(), ranks_phrase({left.first()})));
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
}

}  // namespace

std::optional<Diagnosis> judge_ends(const std::vector<LogFact>& facts) {
  struct End {
    Kind fact;
    FindingKind kind;
    const char* advice;
  };
  constexpr std::array<End, 3> ends = {{
      {Kind::ended, FindingKind::crashed_rank,
       "read what the rank printed last, and the kernel's log for a kill; the other ranks wait for a process "
       "that is no longer there"},
      {Kind::stopped, FindingKind::stuck_host,
       "let the process continue, or find out what blocks it: the stack says where"},
      {Kind::exited, FindingKind::early_exit, advice_for_early_exit},
  }};
  for (const End& end : ends) {
    const LogFact* fact = first_of(facts, end.fact);
    if (fact == nullptr) {
      continue;
    }
    const RankSet ranks = ranks_with(facts, end.fact);
    Diagnosis diagnosis = diagnosis_of(end.kind, Confidence::high, ranks);
    const char* verb = end.fact == Kind::stopped ? "stopped" : "gone";
    diagnosis.finding.headline =
        fmt::format("the {} of {} {}: {}", is_plural(ranks) ? "processes" : "process", ranks_phrase(ranks),
                    (is_plural(ranks) ? "are " : "is ") + std::string(verb), fact->text);
    diagnosis.finding.cause =
        fmt::format("the other ranks make calls that need {}", is_plural(ranks) ? "them" : "it");
    diagnosis.finding.advice = end.advice;
    diagnosis.evidence.push_back(
        fmt::format("{}: {}: {}", fact->place(), ranks_phrase(fact->ranks), fact->text));
    return diagnosis;
  }
  return judge_programs_that_ended(facts);
}

// Gloo ends a rank that is sent more than it expects, and NCCL its call. Only the sizes on both sides tell which of the
// two is wrong.
std::optional<Diagnosis> judge_aborts(const std::vector<LogFact>& facts) {
  const bool is_by_gloo = first_of(facts, Kind::aborted) != nullptr;
  const Kind kind = is_by_gloo ? Kind::aborted : Kind::truncated;
  const RankSet aborted = ranks_with(facts, kind);
  if (aborted.empty()) {
    return std::nullopt;
  }
  const LogFact& fact = *first_of(facts, kind);
  Diagnosis diagnosis = diagnosis_of(FindingKind::size_mismatch, Confidence::low, {});
  diagnosis.alternatives = {FindingKind::extra_collective, FindingKind::skipped_collective};
  diagnosis.finding.headline =
      fmt::format("{} {}: {} sent more than expected", is_by_gloo ? "Gloo ended" : "NCCL ended a call of",
                  ranks_phrase(aborted), is_plural(aborted) ? "they were" : "it was");
  const std::size_t versus = fact.text.find(" vs ");
  diagnosis.finding.cause = versus == std::string::npos
                                ? fmt::format("a message of {} bytes came", fact.text)
                                : fmt::format("a message of {} bytes came, and {} were expected",
                                              fact.text.substr(0, versus), fact.text.substr(versus + 4));
  diagnosis.finding.advice = "compare what the ranks pass to that call, and whether they make the same one";
  diagnosis.finding.at = Place{{}, {}, aborted};
  diagnosis.finding.at->call.op = fact.op.empty() ? "a call" : fact.op;
  diagnosis.evidence.push_back(fmt::format(
      "{}: {} ({} bytes)", fact.place(),
      is_by_gloo ? "Received data size doesn't match expected size" : "message truncated", fact.text));
  diagnosis.would_settle.push_back(dumps_would_say);
  diagnosis.would_settle.push_back(
      "TORCH_DISTRIBUTED_DEBUG=DETAIL in the next run: it compares sizes before each call");
  return diagnosis;
}

RankSet waited_themselves(const std::vector<LogFact>& facts) {
  return ranks_where(facts, [](const LogFact& fact) {
    return fact.kind == Kind::gave_up && (fact.op.empty() || is_message(fact.op));
  });
}

// An Xid names a GPU and a process. Without a rank it is only evidence.
std::optional<Diagnosis> judge_devices(const std::vector<LogFact>& facts) {
  const LogFact* error = first_of(facts, Kind::device_error);
  if (error == nullptr) {
    return std::nullopt;
  }
  Diagnosis diagnosis =
      diagnosis_of(FindingKind::stuck_device, Confidence::low, ranks_with(facts, Kind::device_error));
  diagnosis.finding.headline = fmt::format("the kernel reports an error of a GPU (Xid {})", error->seq);
  diagnosis.finding.cause = error->text;
  diagnosis.finding.advice =
      "find the rank whose process or GPU that is: its calls are those that do not finish";
  diagnosis.evidence.push_back(fmt::format("{}: {}", error->place(), error->text));
  diagnosis.would_settle.push_back("which rank ran on that GPU: its process id in the job's log");
  return diagnosis;
}

}  // namespace rollcall::check
