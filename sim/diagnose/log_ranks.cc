#include "sim/diagnose/log_ranks.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include <fmt/core.h>

#include "sim/base/ascii.h"
#include "sim/diagnose/dump_ops.h"
#include "sim/diagnose/error_advice.h"
#include "sim/diagnose/log_calls.h"
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

// The calls of a rank in its log, in order.
struct LoggedCalls {
  std::vector<const LogFact*> calls;
  bool has_groups = false;  // the numbers of several groups: some repeat

  const LogFact& last() const { return *calls.back(); }
};

// What a call has in common with its repetitions. The rank's number in the group is part of it: it may differ from
// group to group.
std::string token_of(const LogFact& fact) { return fact.op + fact.shape + fact.dtype + fact.group; }

// True if the rank's last call never followed the one before it earlier.
bool departs(const LoggedCalls& list) {
  if (list.calls.size() < 4) {
    return false;
  }
  const std::string before = token_of(*list.calls[list.calls.size() - 2]);
  const std::string last = token_of(list.last());
  std::size_t times = 0;
  for (std::size_t i = 1; i + 1 < list.calls.size(); ++i) {
    if (token_of(*list.calls[i - 1]) == before) {
      ++times;
      if (token_of(*list.calls[i]) == last) {
        return false;
      }
    }
  }
  return times >= 2;
}

// By rank, in their order; pointers into `facts`.
std::map<Rank, LoggedCalls> lists_in(const std::vector<LogFact>& facts) {
  std::map<Rank, LoggedCalls> lists;
  for (const LogFact& fact : facts) {
    if (fact.kind == Kind::calls) {
      LoggedCalls& list = lists[fact.ranks.first()];
      list.has_groups = list.has_groups || (!list.calls.empty() && fact.seq <= list.calls.back()->seq);
      list.calls.push_back(&fact);
    }
  }
  return lists;
}

bool has_groups_in(const std::map<Rank, LoggedCalls>& lists) {
  return std::ranges::any_of(lists, [](const auto& entry) { return entry.second.has_groups; });
}

// For calls of several groups, which the lines do not name: finds the one rank that made fewer calls than any other.
std::optional<Diagnosis> judge_fewest_calls(const std::map<Rank, LoggedCalls>& lists) {
  std::map<std::size_t, RankSet> by_length;
  for (const auto& [rank, list] : lists) {
    by_length[list.calls.size()].insert(rank);
  }
  const auto& [fewest, behind] = *by_length.begin();
  constexpr std::size_t apart_max = 4;  // a larger difference is how the job is built
  if (behind.size() != 1 || lists.size() < 3 || by_length.rbegin()->first - fewest > apart_max) {
    return std::nullopt;
  }
  const LogFact& last = lists.at(behind.first()).last();
  Diagnosis diagnosis = diagnosis_of(FindingKind::stuck_host, Confidence::low, behind);
  diagnosis.alternatives = {FindingKind::skipped_collective, FindingKind::early_exit};
  set_op(last.op, {}, behind, diagnosis);
  diagnosis.finding.headline = fmt::format("{} made fewer calls than any other rank", ranks_phrase(behind));
  diagnosis.finding.cause = fmt::format("its last is {} of {}", last.op, last.shape);
  diagnosis.finding.advice = fmt::format("check what {} did after that call", ranks_phrase(behind));
  diagnosis.evidence.push_back(
      fmt::format("{}: the last call in the log of {}", last.place(), ranks_phrase(behind)));
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
}

std::string error_evidence(const LogFact& error) {
  return fmt::format("{}: {}{}", error.place(), error.text,
                     error.site.empty() ? "" : fmt::format(" (at {})", error.site));
}

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

namespace {

// For missing ranks that were all held up by messages.
Diagnosis held_up_by_messages(const RankSet& behind, const LogFact& waiting, const LogFact& shown) {
  Diagnosis diagnosis = diagnosis_of(FindingKind::p2p_mismatch, Confidence::low, behind);
  diagnosis.finding.tie = behind.size() > 1;
  set_op(waiting.op, {}, behind, diagnosis);
  diagnosis.alternatives = {FindingKind::stuck_host};
  diagnosis.finding.at->call.seq = waiting.seq;
  diagnosis.finding.headline = fmt::format("{} waited in messages until the timeout, and never made {} #{}",
                                           ranks_phrase(behind), waiting.op, waiting.seq);
  diagnosis.finding.cause = "their messages were not answered: the lists of calls do not say by whom";
  diagnosis.finding.advice = "post one recv for every send, between the same two ranks and in the same order";
  diagnosis.evidence.push_back(fmt::format("{}: {}", shown.place(), shown.text));
  diagnosis.would_settle.push_back(
      "the peers of the messages that the ranks wait in: DETAIL counts messages and does not list them; a "
      "run under `rollcall watch` does");
  return diagnosis;
}

}  // namespace

RankSet straying_ranks(const std::vector<LogFact>& facts) {
  RankSet straying;
  for (const auto& [rank, list] : lists_in(facts)) {
    if (departs(list)) {
      straying.insert(rank);
    }
  }
  return straying;
}

void doubt_calls_with_roots(const std::vector<LogFact>& facts, const RankSet& ranks, Diagnosis& diagnosis) {
  for (const auto& [rank, list] : lists_in(facts)) {
    if (ranks.contains(rank) && has_root(lower(list.last().op))) {
      diagnosis.confidence = Confidence::low;
      diagnosis.alternatives.insert(diagnosis.alternatives.begin(), FindingKind::root_mismatch);
      diagnosis.evidence.push_back(fmt::format(
          "{}: the last call of rank {} is {}, which has a root: the rank may wait in it, for ranks that "
          "name another root",
          list.last().place(), rank, list.last().op));
      return;
    }
  }
}

// DETAIL logs every call before it is made.
std::optional<Diagnosis> judge_call_lists(const std::vector<LogFact>& facts) {
  const std::map<Rank, LoggedCalls> lists = lists_in(facts);
  if (lists.size() < 2) {
    return std::nullopt;
  }
  std::map<std::int64_t, RankSet> by_last;
  // DETAIL also counts messages, but does not list them. Then the lengths of the lists are comparable, but the numbers
  // are not.
  bool counts_messages = false;
  bool begin_together = true;
  for (const auto& [rank, list] : lists) {
    const std::int64_t first = list.calls.front()->seq;
    begin_together = begin_together && first == lists.begin()->second.calls.front()->seq;
    counts_messages =
        counts_messages || static_cast<std::size_t>(list.last().seq - first) + 1 != list.calls.size();
  }
  if (!begin_together && !has_groups_in(lists)) {
    return std::nullopt;  // logs that were cut off, or messages before the first call
  }
  for (const auto& [rank, list] : lists) {
    by_last[counts_messages ? static_cast<std::int64_t>(list.calls.size()) : list.last().seq].insert(rank);
  }
  if (has_groups_in(lists)) {  // numbers of several groups, which the lines do not name
    const RankSet straying = straying_ranks(facts);
    if (straying.empty()) {
      return judge_fewest_calls(lists);
    }
    if (straying.size() == lists.size()) {
      return std::nullopt;
    }
    const LogFact& last = lists.at(straying.first()).last();
    Diagnosis diagnosis = diagnosis_of(FindingKind::cross_group_deadlock, Confidence::medium, straying);
    set_op(last.op, {}, {}, diagnosis);
    diagnosis.alternatives = {FindingKind::skipped_collective};
    diagnosis.finding.headline = fmt::format("{} left {} usual order of calls", ranks_phrase(straying),
                                             is_plural(straying) ? "their" : "its");
    diagnosis.finding.cause =
        fmt::format("the last call, {} of {}, followed on another than before", last.op, last.shape);
    diagnosis.finding.advice = groups_in_one_order;
    diagnosis.evidence.push_back(fmt::format("{}: the last call", last.place()));
    diagnosis.would_settle.push_back(dumps_would_say);
    return diagnosis;
  }
  if (by_last.size() < 2) {
    return std::nullopt;
  }
  RankSet ahead = by_last.rbegin()->second;
  RankSet behind;
  for (const auto& [seq, ranks] : by_last) {
    if (seq != by_last.rbegin()->first) {
      behind.insert(ranks);
    }
  }
  const LogFact& waiting = lists.at(ahead.first()).last();
  const RankSet silent = counts_messages ? difference(behind, waited_themselves(facts)) : behind;
  if (silent.empty()) {
    const auto shown = std::ranges::find_if(facts, [&behind](const LogFact& fact) {
      return fact.kind == Kind::gave_up && behind.contains(fact.ranks.first());
    });
    return held_up_by_messages(behind, waiting, *shown);
  }
  const bool is_extra = ahead.size() < behind.size() && silent == behind;
  const RankSet& odd = is_extra ? ahead : silent;
  const LogFact& own = lists.at(odd.first()).last();
  Diagnosis diagnosis = diagnosis_of(is_extra ? FindingKind::extra_collective : FindingKind::stuck_host,
                                     Confidence::medium, odd);
  diagnosis.alternatives = is_extra ? std::vector{FindingKind::stuck_host, FindingKind::partial_subgroup}
                                    : std::vector{FindingKind::early_exit, FindingKind::skipped_collective,
                                                  FindingKind::crashed_rank};
  set_op(waiting.op, ahead, behind, diagnosis);
  diagnosis.finding.at->call.seq = waiting.seq;
  diagnosis.finding.headline = fmt::format("{} {} {} #{}", ranks_phrase(odd),
                                           is_extra ? "alone made" : "never made", waiting.op, waiting.seq);
  diagnosis.finding.cause = fmt::format(
      "the last call of {} is {} #{}, that of {} is {} #{}", ranks_phrase(odd), own.op, own.seq,
      ranks_phrase(is_extra ? behind : ahead), is_extra ? lists.at(behind.first()).last().op : waiting.op,
      is_extra ? lists.at(behind.first()).last().seq : waiting.seq);
  diagnosis.finding.advice = fmt::format("check what {} did after that call", ranks_phrase(odd));
  diagnosis.evidence.push_back(
      fmt::format("{}: the last call in the log of {}", own.place(), ranks_phrase(odd)));
  diagnosis.would_settle.push_back(fmt::format("the host stack of {} (py-spy dump)", ranks_phrase(odd)));
  doubt_calls_with_roots(facts, behind, diagnosis);
  return diagnosis;
}

namespace {

// For ranks that all waited until they gave up, but not all in the same call.
std::optional<Diagnosis> judge_different_calls(const std::vector<LogFact>& facts, const RankSet& failed) {
  std::map<std::string, RankSet> by_op;
  std::map<Rank, const LogFact*> calls;
  for (const LogFact& fact : facts) {
    const bool has_failed = fact.kind == Kind::lost_peer || fact.kind == Kind::gave_up;
    if (has_failed && calls.emplace(fact.ranks.first(), &fact).second) {
      by_op[fact.op].insert(fact.ranks);
    }
  }
  const bool is_known = std::ranges::none_of(by_op, [](const auto& entry) {
    return entry.first.empty() || is_message(entry.first) || is_about_groups(entry.first);
  });
  if (!is_known || by_op.size() < 2) {
    return std::nullopt;
  }
  const auto most =
      std::ranges::max_element(by_op, {}, [](const auto& entry) { return entry.second.size(); });
  const RankSet odd = difference(failed, most->second);
  if (odd.size() >= most->second.size()) {
    return std::nullopt;
  }
  const LogFact& theirs = *calls.at(odd.first());
  const LogFact& usual = *calls.at(most->second.first());
  // A call with a root ends for some ranks while others wait in it, so whoever is elsewhere may be right.
  const bool has_roots = std::ranges::any_of(by_op, [](const auto& entry) { return has_root(entry.first); });
  Diagnosis diagnosis =
      diagnosis_of(FindingKind::op_type_mismatch, has_roots ? Confidence::low : Confidence::medium, odd);
  diagnosis.alternatives = {FindingKind::skipped_collective, FindingKind::extra_collective};
  set_op(most->first, most->second, {}, diagnosis);
  diagnosis.finding.headline =
      fmt::format("{} waited in {}, the others in {}", ranks_phrase(odd), theirs.op, most->first);
  diagnosis.finding.cause = "calls that do not belong together met, and none of them finished";
  diagnosis.finding.advice = "look for a branch around a collective that depends on the rank";
  for (const LogFact* fact : {&theirs, &usual}) {
    diagnosis.evidence.push_back(fmt::format("{}: {} gave up in {}{}", fact->place(),
                                             ranks_phrase(fact->ranks), fact->op,
                                             fact->site.empty() ? "" : " at " + fact->site));
  }
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
}

}  // namespace

// For ranks whose last error looked as if they had survived it, and for which the others waited.
Diagnosis logged_before_others_failed(const LogFact& error, const RankSet& ranks, const RankSet& failed) {
  Diagnosis diagnosis = diagnosis_of(FindingKind::crashed_rank, Confidence::low, ranks);
  diagnosis.alternatives = {FindingKind::stuck_host};
  diagnosis.finding.headline =
      fmt::format("{} logged an error, and {} for {}", ranks_phrase(ranks),
                  with_verb(failed, "waited", "waited"), is_plural(ranks) ? "them" : "it");
  diagnosis.finding.cause = error.text;
  diagnosis.finding.advice = advice_on_error(error.text);
  diagnosis.evidence.push_back(error_evidence(error));
  return diagnosis;
}

// Ranks that waited say so when they, or others, give up; a rank that did not make the call has nothing to report.
std::optional<Diagnosis> judge_silence(const std::vector<LogFact>& facts) {
  const RankSet failed = ranks_with(facts, {Kind::lost_peer, Kind::gave_up});
  RankSet known = ranks_with(facts, Kind::wrote);
  const bool is_launchers =  // of one process: the others are not silent
      known.empty() && !failed.empty() && ranks_with(facts, Kind::first_to_fail).contains(failed);
  if (failed.empty() || is_launchers || first_of(facts, Kind::repeated) != nullptr) {
    return std::nullopt;
  }
  known.insert(RankSet::range(0, failed.ranges().back().last));
  const auto op_of = [&facts](Rank rank) -> const LogFact* {
    const auto place = std::ranges::find_if(facts, [rank](const LogFact& fact) {
      return (fact.kind == Kind::lost_peer || fact.kind == Kind::gave_up) && fact.ranks.contains(rank);
    });
    return place == facts.end() ? nullptr : &*place;
  };
  // Where ranks gave up waiting, those that lost a peer may have lost one of these.
  const bool is_gone = ranks_with(facts, Kind::gave_up).empty();
  RankSet silent = difference(difference(known, failed), ranks_with(facts, Kind::named_missing));
  if (is_gone) {
    silent = difference(silent, ranks_with(facts, Kind::outlived));
  }
  const LogFact& shown = *op_of(failed.first());
  if (!silent.empty() && ranks_with(facts, Kind::logged).contains(silent)) {
    return logged_before_others_failed(*first_of(facts, Kind::logged), silent, failed);
  }
  if (silent.empty()) {
    if (!std::ranges::all_of(failed.to_vector(), [&](Rank rank) { return is_message(op_of(rank)->op); })) {
      return judge_different_calls(facts, failed);
    }
    Diagnosis diagnosis = diagnosis_of(FindingKind::p2p_mismatch, Confidence::low, failed);
    diagnosis.finding.tie = true;
    set_op(shown.op, failed, {}, diagnosis);
    diagnosis.finding.headline = fmt::format("{} waited in messages until the timeout", ranks_phrase(failed));
    diagnosis.finding.cause =
        fmt::format("no rank was left to answer: {} in {}", ranks_phrase({failed.first()}), shown.op);
    diagnosis.finding.advice = "post one recv for every send; let one side of each pair send first";
    diagnosis.evidence.push_back(fmt::format("{}: {}", shown.place(), shown.text));
    return diagnosis;
  }
  if (silent.size() >= failed.size() + (is_gone ? 0 : 1)) {
    return std::nullopt;
  }
  // A rank that waits without a timeout of its own is silent, too, and so is one that its launcher ended while it
  // waited. If the others waited in different calls, it may be a victim like them.
  std::set<std::string> calls;
  for (const Rank rank : failed.to_vector()) {
    calls.insert(op_of(rank)->op + " at " + op_of(rank)->site);
  }
  const bool may_have_waited = calls.size() > 1 && ranks_with(facts, Kind::outlived).contains(silent);
  const Confidence confidence =
      silent.size() >= failed.size() || may_have_waited ? Confidence::low : Confidence::medium;
  Diagnosis diagnosis =
      diagnosis_of(is_gone ? FindingKind::crashed_rank : FindingKind::stuck_host, confidence, silent);
  diagnosis.alternatives = {is_gone ? FindingKind::stuck_host : FindingKind::crashed_rank,
                            FindingKind::early_exit};
  set_op(shown.op, failed, silent, diagnosis);
  diagnosis.finding.headline =
      fmt::format("{} no error, and {} for {}", with_verb(silent, "reports", "report"),
                  with_verb(failed, "waited", "waited"), is_plural(silent) ? "them" : "it");
  diagnosis.finding.cause =
      is_gone ? fmt::format(
                    "{} exited or {} killed silently; or {} did not arrive, and those that waited "
                    "ended each other",
                    is_plural(silent) ? "their processes" : "its process", is_plural(silent) ? "were" : "was",
                    is_plural(silent) ? "they" : "it")
              : fmt::format("{} did not reach the call in which the others timed out",
                            is_plural(silent) ? "they" : "it");
  diagnosis.finding.advice =
      fmt::format("check what {} did instead: its stack (py-spy dump), the kernel's log for a kill",
                  ranks_phrase(silent));
  diagnosis.evidence.push_back(error_evidence(shown));
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
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
