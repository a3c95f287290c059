#include "sim/diagnose/log_judge.h"
#include "sim/diagnose/log_calls.h"
#include "sim/diagnose/log_ranks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "sim/wording/phrasing.h"

namespace rollcall::check {

using Kind = LogFact::Kind;

namespace {

bool has(const std::vector<LogFact>& facts, Kind kind) { return first_of(facts, kind) != nullptr; }

}  // namespace

bool log_shows_timeout(const std::vector<LogFact>& facts) {
  constexpr Kind kinds[] = {Kind::timed_out,    Kind::barrier_missing, Kind::not_joined,
                            Kind::not_finished, Kind::gave_up,         Kind::told_of_timeout};
  return std::ranges::any_of(kinds, [&facts](Kind kind) { return has(facts, kind); });
}

bool log_shows_failure(const std::vector<LogFact>& facts) {
  return log_shows_timeout(facts) || has(facts, Kind::lost_peer) || has(facts, Kind::fingerprint);
}

namespace {

// True if the facts show more than one moment: an end, or NCCL's counters, which are of another moment than the dumps.
bool is_final(const std::vector<LogFact>& facts) {
  constexpr Kind ends[] = {Kind::raised, Kind::first_to_fail, Kind::fingerprint, Kind::lost_peer,
                           Kind::blamed, Kind::aborted,       Kind::truncated,   Kind::device_error,
                           Kind::ended,  Kind::stopped,       Kind::launched};
  return log_shows_timeout(facts) ||
         std::ranges::any_of(ends, [&facts](Kind kind) { return has(facts, kind); });
}

std::vector<const LogFact*> facts_of(const std::vector<LogFact>& facts, Kind kind) {
  std::vector<const LogFact*> found;
  for (const LogFact& fact : facts) {
    if (fact.kind == kind) {
      found.push_back(&fact);
    }
  }
  return found;
}

// True if all ranks made equally many calls: then their numbers differ by messages, which DETAIL counts and does not
// list.
bool lists_are_equally_long(const std::vector<LogFact>& facts) {
  std::map<Rank, std::size_t> lengths;
  for (const LogFact* fact : facts_of(facts, Kind::calls)) {
    ++lengths[fact->ranks.first()];
  }
  return !lengths.empty() && std::ranges::all_of(lengths, [&](const auto& entry) {
    return entry.second == lengths.begin()->second;
  });
}

// For equal calls with different numbers: some rank has made an extra call, or left one out.
std::optional<Diagnosis> numbers(const std::vector<LogFact>& facts,
                                 const std::map<Rank, const LogFact*>& last) {
  std::map<std::int64_t, RankSet> by_seq;
  for (const auto& [rank, fact] : last) {
    by_seq[fact->seq].insert(rank);
  }
  if (by_seq.size() != 2 || lists_are_equally_long(facts)) {
    return std::nullopt;
  }
  const auto& [low, behind] = *by_seq.begin();
  const auto& [high, ahead] = *by_seq.rbegin();
  const bool is_extra = ahead.size() < behind.size();
  const RankSet& odd = is_extra ? ahead : behind;
  const bool tie = ahead.size() == behind.size();
  Diagnosis diagnosis =
      diagnosis_of(is_extra ? FindingKind::extra_collective : FindingKind::skipped_collective,
                   tie ? Confidence::low : Confidence::medium, odd);
  diagnosis.finding.tie = tie;
  set_call(*last.at(odd.first()), {}, diagnosis);
  diagnosis.finding.headline =
      fmt::format("{} had made {} calls, and {} {}", ranks_phrase(odd), is_extra ? high : low,
                  ranks_phrase(is_extra ? behind : ahead), is_extra ? low : high);
  if (tie) {
    diagnosis.finding.culprits.insert(is_extra ? behind : ahead);
    diagnosis.alternatives = {FindingKind::extra_collective};
    diagnosis.would_settle.push_back("the lines of all ranks: each compares itself with only one other");
  }
  diagnosis.finding.advice = "look for a branch around a collective that depends on the rank";
  return diagnosis;
}

// Every rank compares itself with another and names it, so the lines of all ranks are put together and counted. The
// name is a rank in their group: if the writer's rank in the group differs from its rank in the job, it is unknown
// which rank it names.
std::optional<Diagnosis> fingerprints(const std::vector<LogFact>& facts) {
  const std::vector<const LogFact*> prints = facts_of(facts, Kind::fingerprint);
  const bool is_subgroup = std::ranges::any_of(prints, [](const LogFact* print) {
    return !print->group.empty() && print->group != std::to_string(print->ranks.first());
  });
  std::map<Rank, const LogFact*> last;
  for (const LogFact* fact : prints) {
    if (is_subgroup && fact->group.empty()) {
      continue;
    }
    const LogFact*& known = last[fact->ranks.first()];
    known = known == nullptr || fact->seq > known->seq ? fact : known;
  }
  using Call = std::tuple<std::string, std::string, std::string>;
  std::map<Call, RankSet> calls;
  for (const auto& [rank, fact] : last) {
    calls[{fact->op, fact->shape, fact->dtype}].insert(rank);
  }
  if (calls.size() == 1) {
    return numbers(facts, last);
  }
  if (calls.empty()) {
    return std::nullopt;
  }
  const Sides sides = sides_of(calls);
  RankSet odd = sides.odd;
  const RankSet steady = difference(odd, straying_ranks(facts));
  if (sides.tie && !steady.empty() && steady != odd) {
    odd = difference(odd, steady);
    Diagnosis diagnosis =
        disagreement(odd, Confidence::medium, *last.at(odd.first()), *last.at(steady.first()));
    diagnosis.evidence.push_back(
        fmt::format("{}: the last call of {} follows on another than ever before, and the others' do not",
                    last.at(odd.first())->place(), ranks_phrase(odd)));
    return diagnosis;
  }
  Diagnosis diagnosis = disagreement(odd, sides.tie ? Confidence::low : Confidence::high,
                                     *last.at(sides.other), *last.at(sides.usual));
  diagnosis.finding.tie = sides.tie;
  if (sides.tie) {
    diagnosis.would_settle.push_back("the lines of all ranks: each compares itself with only one other");
  }
  return diagnosis;
}

// Those of `ranks` that made all calls of another one of them and then more: they may wait for it.
RankSet beyond_another_of(const std::vector<LogFact>& facts, const RankSet& ranks) {
  using Calls = std::vector<std::tuple<std::string, std::string, std::int64_t>>;
  std::map<Rank, Calls> lists;
  for (const LogFact* fact : facts_of(facts, Kind::calls)) {
    if (ranks.contains(fact->ranks.first())) {
      lists[fact->ranks.first()].emplace_back(fact->op, fact->shape, fact->seq);
    }
  }
  RankSet beyond;
  for (const auto& [rank, list] : lists) {
    const bool goes_on_after = std::ranges::any_of(lists, [&list](const auto& other) {
      return other.second.size() < list.size() &&
             std::equal(other.second.begin(), other.second.end(), list.begin());
    });
    if (goes_on_after) {
      beyond.insert(rank);
    }
  }
  return beyond;
}

std::optional<Diagnosis> named_as_missing(const std::vector<LogFact>& facts) {
  for (const Kind kind : {Kind::barrier_missing, Kind::not_joined}) {
    const LogFact* first = first_of(facts, kind);
    if (first == nullptr) {
      continue;
    }
    const RankSet named = ranks_with(facts, kind);
    RankSet missing = difference(named, waited_themselves(facts));
    const RankSet waited = difference(named, missing);
    if (missing.empty()) {
      continue;  // each of them waits for another, and the calls that they wait in say more
    }
    const RankSet beyond = beyond_another_of(facts, missing);
    missing = difference(missing, beyond);
    Diagnosis diagnosis =
        diagnosis_of(FindingKind::stuck_host, beyond.empty() ? Confidence::medium : Confidence::low, missing);
    diagnosis.alternatives = {FindingKind::early_exit, FindingKind::crashed_rank};
    set_call(*first, missing, diagnosis);
    diagnosis.finding.headline = fmt::format("{} did not reach {}", ranks_phrase(missing), call_text(*first));
    diagnosis.finding.cause =
        first->op == "init_process_group"  // `watch` has seen them wait
            ? fmt::format("the others reached it and wait for {}", is_plural(missing) ? "them" : "it")
            : "the others reached it and waited until the timeout";
    diagnosis.finding.advice = look_at(missing);
    if (!first->text.empty()) {
      diagnosis.finding.kind = FindingKind::crashed_rank;
      diagnosis.alternatives = {FindingKind::early_exit};
      diagnosis.finding.cause =
          fmt::format("the others reached it, and found the process gone: {}", first->text);
    }
    diagnosis.evidence.push_back(fmt::format("{} names {}", first->place(), ranks_phrase(missing)));
    if (!beyond.empty()) {
      diagnosis.evidence.push_back(fmt::format("{} did not arrive either, and made a call that {} never made",
                                               ranks_phrase(beyond), ranks_phrase(missing)));
    }
    if (!waited.empty()) {
      diagnosis.evidence.push_back(fmt::format(
          "{} did not arrive either, and waited for others until the timeout", ranks_phrase(waited)));
    }
    diagnosis.would_settle.push_back(fmt::format("the log or the host stack of {}", ranks_phrase(missing)));
    doubt_calls_with_roots(facts, missing, diagnosis);
    return diagnosis;
  }
  return std::nullopt;
}

// A barrier that gives up on missing ranks ends the processes of the ranks that came. That is how the job ended, not
// why.
std::optional<Diagnosis> named_before_the_end(const std::vector<LogFact>& facts) {
  const RankSet missing = ranks_with(facts, Kind::barrier_missing);
  const bool ended_others = !missing.empty() && !ranks_with(facts, Kind::ended).meets(missing);
  return ended_others ? named_as_missing(facts) : std::nullopt;
}

std::optional<Diagnosis> not_finished(const std::vector<LogFact>& facts) {
  const RankSet ranks = ranks_with(facts, Kind::not_finished);
  if (ranks.empty()) {
    return std::nullopt;
  }
  const LogFact& fact = *first_of(facts, Kind::not_finished);
  Diagnosis diagnosis = diagnosis_of(FindingKind::stuck_device, Confidence::low, ranks);
  diagnosis.alternatives = {FindingKind::op_type_mismatch, FindingKind::size_mismatch};
  set_call(fact, {}, diagnosis);
  diagnosis.finding.headline =
      fmt::format("{} made {}, and it did not end there", ranks_phrase(ranks), call_text(fact));
  diagnosis.finding.cause = "the report of torch's watchdog says that this kept the others waiting";
  diagnosis.finding.advice = fmt::format(
      "compare the call of {} with that of the others; look for device errors "
      "(Xid, ECC, CUDA)",
      ranks_phrase(ranks));
  diagnosis.evidence.push_back(fmt::format("{} names {}", fact.place(), ranks_phrase(ranks)));
  return diagnosis;
}

std::optional<Diagnosis> unreachable(const std::vector<LogFact>& facts) {
  RankSet silent;
  RankSet dead;
  std::string place;
  for (const LogFact* fact : facts_of(facts, Kind::unreachable)) {
    (fact->text.empty() ? dead : silent).insert(fact->ranks);
    place = place.empty() ? fact->place() : place;
  }
  const RankSet& ranks = dead.empty() ? silent : dead;
  if (ranks.empty()) {
    return std::nullopt;
  }
  // RAS asks along a chain of processes: some may not be heard because another one is gone.
  const Confidence confidence = dead.empty() ? Confidence::low : Confidence::medium;
  Diagnosis diagnosis = diagnosis_of(FindingKind::crashed_rank, confidence, ranks);
  diagnosis.finding.headline = fmt::format("{} no longer {} NCCL's health check", ranks_phrase(ranks),
                                           is_plural(ranks) ? "answer" : "answers");
  diagnosis.finding.cause = "the process has ended, or its node cannot be reached";
  diagnosis.finding.advice =
      fmt::format("read the log of {} for an exception or a signal", ranks_phrase(ranks));
  diagnosis.evidence.push_back(fmt::format("{} lists {} as missing", place, ranks_phrase(ranks)));
  if (dead.empty()) {
    diagnosis.would_settle.push_back(
        "the same query some seconds later: RAS gives up ranks that stay silent");
  }
  return diagnosis;
}

// Communicators of some ranks: NCCL numbers those from 0, too. Those that do not answer are named first.
std::optional<Diagnosis> launches_of_parts(const std::vector<LogFact>& facts) {
  Diagnosis diagnosis = undecided();
  const auto list_unplaced = [&](Kind kind) {
    for (const LogFact* fact : facts_of(facts, kind)) {
      if (!fact->text.empty() && fact->ranks.empty()) {
        diagnosis.evidence.push_back(
            fmt::format("{}: communicator {}: {}", fact->place(), fact->group, fact->text));
      }
    }
  };
  list_unplaced(Kind::unreachable);
  const bool are_silent = !diagnosis.evidence.empty();
  list_unplaced(Kind::launched);
  if (diagnosis.evidence.empty()) {
    return std::nullopt;
  }
  diagnosis.finding.headline =
      fmt::format("members of communicators {}, and NCCL RAS does not say which ranks of the job they are",
                  are_silent ? "do not answer" : "have launched different numbers of collectives");
  diagnosis.would_settle = {
      "the same in JSON, which lists the processes of all communicators (ncclras -f json)",
      "the host stacks of these processes (py-spy dump)"};
  return diagnosis;
}

// RAS counts launches per communicator and names a few ranks: sometimes those behind, sometimes those ahead.
std::optional<Diagnosis> launches(const std::vector<LogFact>& facts) {
  std::map<std::string, std::map<std::int64_t, RankSet>> communicators;
  std::map<std::string, std::string> places;
  for (const LogFact* fact : facts_of(facts, Kind::launched)) {
    communicators[fact->group][fact->seq].insert(fact->ranks);
    places.emplace(fact->group, fact->place());
  }
  for (const auto& [name, counts] : communicators) {
    if (counts.size() < 2) {
      continue;
    }
    RankSet behind;
    RankSet ahead;
    for (const auto& [seq, ranks] : counts) {
      (seq < counts.rbegin()->first ? behind : ahead).insert(ranks);
    }
    const bool names_the_late = !behind.empty() && (ahead.empty() || behind.size() <= ahead.size());
    const RankSet& odd = names_the_late ? behind : ahead;
    if (odd.empty()) {
      continue;
    }
    Diagnosis diagnosis = diagnosis_of(
        names_the_late ? FindingKind::stuck_host : FindingKind::extra_collective, Confidence::low, odd);
    diagnosis.may_be_healthy = !log_shows_timeout(facts);
    diagnosis.alternatives = {names_the_late ? FindingKind::straggler : FindingKind::stuck_host};
    diagnosis.finding.headline =
        names_the_late ? fmt::format("{} launched fewer collectives than the others", ranks_phrase(odd))
                       : fmt::format("{} launched a collective that the others have not", ranks_phrase(odd));
    diagnosis.finding.cause =
        fmt::format("the others have launched {} on communicator {}",
                    names_the_late ? counts.rbegin()->first : counts.begin()->first, name);
    diagnosis.finding.advice = fmt::format("inspect the host stack of {}", ranks_phrase(odd));
    diagnosis.group_name = name;
    diagnosis.evidence.push_back(fmt::format("{}: NCCL RAS counts launches per rank", places.at(name)));
    diagnosis.would_settle.push_back(
        "the same query some seconds later: ranks that are only slow have moved on");
    return diagnosis;
  }
  return launches_of_parts(facts);
}

// Lists of calls that end differently. A job at work leaves such lists, too.
std::optional<Diagnosis> call_lists(const std::vector<LogFact>& facts) {
  std::optional<Diagnosis> diagnosis = judge_call_lists(facts);
  if (diagnosis && !is_final(facts)) {
    diagnosis->confidence = Confidence::low;
    diagnosis->may_be_healthy = true;
    diagnosis->would_settle.push_back("the same logs some time later: a job at work has called more by then");
  }
  return diagnosis;
}

bool is_open(const Diagnosis& diagnosis) {
  return diagnosis.confidence == Confidence::low || diagnosis.finding.tie ||
         diagnosis.finding.culprits.empty();
}

}  // namespace

// Asks the judges in order of how much they prove.
std::optional<Diagnosis> judge_log(const std::vector<LogFact>& facts) {
  for (const auto judge : {fingerprints,
                           judge_shared_gpus,
                           judge_models,
                           judge_errors,  // a rank that raised is missing, too
                           named_before_the_end,
                           judge_ends,
                           named_as_missing,
                           judge_aborts,
                           call_lists,
                           unreachable,
                           not_finished,
                           judge_watchdog,
                           launches,
                           judge_store_barriers,
                           judge_silence,
                           judge_host_stacks,
                           judge_devices,
                           judge_logged_errors,
                           judge_nccl_failures,
                           judge_unplaced_errors,
                           judge_stuck_watchdogs,
                           judge_stopped_job,
                           judge_lost_store}) {
    if (std::optional<Diagnosis> diagnosis = judge(facts)) {
      return diagnosis;
    }
  }
  return std::nullopt;
}

namespace {

// True if the calls of all ranks with a dump agree, and the rank without one was sent more than it expected: its own
// call was the smaller one.
bool takes_the_blame_for_sizes(const std::vector<LogFact>& facts, const Diagnosis& diagnosis) {
  const RankSet aborted = ranks_with(facts, Kind::aborted);
  return diagnosis.finding.kind == FindingKind::crashed_rank && !aborted.empty() &&
         diagnosis.finding.culprits == aborted;
}

// True if the recordings blame ranks for nothing but that they left no dump.
bool is_by_absence(const Diagnosis& diagnosis) {
  return diagnosis.finding.kind == FindingKind::crashed_rank && !diagnosis.finding.culprits.empty() &&
         diagnosis.without_dump.contains(diagnosis.finding.culprits);
}

// True if the log tells which errors ended the programs of the ranks that it blames.
bool names_own_error(const std::vector<LogFact>& facts, const Diagnosis& log) {
  return log.finding.kind == FindingKind::crashed_rank &&
         ranks_with(facts, Kind::raised).contains(log.finding.culprits);
}

// True if nothing but where the ranks' programs are speaks for the diagnosis.
bool is_by_stacks(const std::vector<LogFact>& facts, const Diagnosis& log) {
  return log.finding.kind == FindingKind::stuck_host && has(facts, Kind::stack) &&
         log.confidence == Confidence::low;
}

// For a log that names the same ranks as the recordings: true if it knows how their processes ended, or which error
// ended their programs. That explains what the recordings show.
bool explains(const std::vector<LogFact>& facts, const Diagnosis& log, const Diagnosis& diagnosis) {
  const bool knows_processes =
      has(facts, Kind::ended) || has(facts, Kind::exited) || has(facts, Kind::stopped);
  const bool knows_error = diagnosis.finding.kind == FindingKind::stuck_host && log_shows_failure(facts) &&
                           names_own_error(facts, log);
  // The recordings show ranks that do nothing, and their stacks the call about groups that they wait in.
  const bool knows_call =
      diagnosis.finding.kind == FindingKind::stuck_host && log.finding.kind == FindingKind::partial_subgroup;
  return (knows_processes && log.confidence == Confidence::high) || knows_error || knows_call;
}

// True if nothing but an error in a log says that a rank failed. The program may have handled it.
bool only_raised(const std::vector<LogFact>& facts) {
  constexpr Kind ends[] = {Kind::first_to_fail, Kind::ended, Kind::exited, Kind::stopped};
  return has(facts, Kind::raised) && !log_shows_failure(facts) &&
         std::ranges::none_of(ends, [&facts](Kind kind) { return has(facts, kind); });
}

void explain(const Diagnosis& log, Diagnosis& diagnosis) {
  diagnosis.evidence.insert(diagnosis.evidence.begin(), diagnosis.finding.headline);
  diagnosis.evidence.insert(diagnosis.evidence.begin(), log.evidence.begin(), log.evidence.end());
  diagnosis.finding.kind = log.finding.kind;
  diagnosis.finding.headline = log.finding.headline;
  diagnosis.finding.cause = log.finding.cause;
  diagnosis.finding.advice = log.finding.advice;
  diagnosis.confidence = log.confidence;
  diagnosis.alternatives = log.alternatives;
  diagnosis.would_settle.clear();
  diagnosis.may_be_healthy = false;
}

void agree(const std::vector<LogFact>& facts, const Diagnosis& log, const std::string& source,
           Diagnosis& diagnosis) {
  diagnosis.evidence.push_back(
      fmt::format("the {}: {}", is_by_stacks(facts, log) ? "stacks agree" : "log agrees", source));
  if (diagnosis.may_be_healthy && !is_final(facts)) {
    return;  // two views of one moment
  }
  diagnosis.may_be_healthy = false;
  if (is_by_absence(diagnosis)) {
    diagnosis.alternatives = log.alternatives;
  }
  if (diagnosis.confidence == Confidence::low) {
    // What both views lack, such as a rank that left nothing, may make both wrong.
    diagnosis.confidence =
        diagnosis.without_dump.empty() ? Confidence::medium : std::max(log.confidence, Confidence::medium);
  } else if (is_final(facts) && !(is_by_absence(diagnosis) && !log.alternatives.empty()) &&
             (diagnosis.alternatives.empty() || log.finding.kind == diagnosis.finding.kind)) {
    diagnosis.confidence = Confidence::high;
  }
}

// An error that a culprit survived, or that only one of its threads died of, may be why it is late: the last one.
void add_own_error(const std::vector<LogFact>& facts, Diagnosis& diagnosis) {
  const auto own = std::find_if(facts.rbegin(), facts.rend(), [&diagnosis](const LogFact& fact) {
    return fact.kind == Kind::logged && !fact.ranks.empty() &&
           diagnosis.finding.culprits.contains(fact.ranks);
  });
  const auto names_it = [&own](const std::string& text) {
    return text.find(own->place()) != std::string::npos;
  };
  if (own != facts.rend() && std::ranges::none_of(diagnosis.evidence, names_it)) {
    diagnosis.evidence.push_back(
        fmt::format("{}: {} logged {}", own->place(), ranks_phrase(own->ranks), own->text));
  }
}

void weigh(const std::vector<LogFact>& facts, bool has_moved, Diagnosis& diagnosis) {
  std::optional<Diagnosis> log = judge_log(facts);
  // A rank that left no dump and was alive has not crashed: it is missing in the recordings, and no more is known.
  if (is_by_absence(diagnosis) && alive_ranks(facts).contains(diagnosis.finding.culprits)) {
    diagnosis.confidence = Confidence::low;
    diagnosis.evidence.push_back(fmt::format("{} left no dump, and {} alive when the job stood still",
                                             ranks_phrase(diagnosis.finding.culprits),
                                             is_plural(diagnosis.finding.culprits) ? "were" : "was"));
    if (!log || log->finding.culprits.empty()) {
      diagnosis.finding = {};
      diagnosis.finding.kind = FindingKind::no_fault;
    }
  }
  if (!log) {
    return;
  }
  const std::string source = log->evidence.empty() ? "the log" : log->evidence.front();
  if (takes_the_blame_for_sizes(facts, diagnosis)) {
    const RankSet culprits = diagnosis.finding.culprits;
    log->finding.culprits = culprits;
    log->finding.cause = fmt::format("{}, and the calls of the others agree", log->finding.cause);
    log->finding.tie = culprits.size() > 1;  // one of them may only have been sent too much by another
    log->confidence = log->finding.tie ? Confidence::low : Confidence::medium;
    log->evidence.insert(log->evidence.end(), diagnosis.evidence.begin(), diagnosis.evidence.end());
    log->finding.at = diagnosis.finding.at;
    diagnosis = *std::move(log);
    return;
  }
  if (log->finding.culprits.empty()) {
    diagnosis.evidence.push_back(fmt::format("in addition to the recordings: {}", source));
    return;
  }
  if (log->finding.culprits == diagnosis.finding.culprits) {
    const bool is_alive = is_by_absence(diagnosis) && log->finding.kind != FindingKind::crashed_rank;
    if (explains(facts, *log, diagnosis) || is_alive) {
      explain(*log, diagnosis);
      return;
    }
    agree(facts, *log, source, diagnosis);
    if (is_by_absence(diagnosis) && names_own_error(facts, *log)) {  // that is why there is no dump
      diagnosis.finding.cause = log->finding.cause;
      diagnosis.finding.advice = log->finding.advice;
      diagnosis.would_settle.clear();
    }
    return;
  }
  // A stack is a view of a job that may be at work. If no rank waits in the recordings, it accuses no rank. A list of
  // calls says more than recordings that are not certain: Gloo's have no messages, and no calls that wait in them.
  const bool is_quiet = diagnosis.finding.kind == FindingKind::no_fault;
  const bool knows_more = has(facts, Kind::calls) && diagnosis.confidence == Confidence::low;
  const bool are_stacks = is_by_stacks(facts, *log);
  const bool is_glance = are_stacks && !log_shows_timeout(facts);
  const bool is_at_work = has_moved && !is_final(facts);
  if (is_quiet && !knows_more && (is_at_work || is_glance)) {
    diagnosis.evidence.push_back(
        fmt::format("in addition to the recordings: {}", are_stacks ? log->finding.headline : source));
    return;
  }
  if (is_quiet && has_moved && only_raised(facts)) {
    diagnosis.may_be_healthy = true;
    diagnosis.confidence = Confidence::low;
    diagnosis.finding.headline = fmt::format("an error of {} is logged, and the ranks make calls",
                                             ranks_phrase(log->finding.culprits));
    diagnosis.evidence.push_back(source);
    return;
  }
  // Where a program waits for a call that it made before, its stack looks as if it were elsewhere. So stacks only
  // choose among the ranks that the recordings name. A rank whose dump shows that it waits has not failed.
  const bool is_beside =
      are_stacks && !diagnosis.finding.culprits.empty() &&
      !diagnosis.finding.culprits.contains(log->finding.culprits) &&
      !(is_by_absence(diagnosis) && ranks_in_no_call(facts).contains(log->finding.culprits));
  const bool is_alive = log->finding.kind == FindingKind::crashed_rank && diagnosis.finding.at &&
                        diagnosis.finding.at->waiting.contains(log->finding.culprits);
  if (is_open(diagnosis) && (!log->finding.tie || is_quiet) && !is_beside && !is_alive) {
    log->evidence.insert(log->evidence.end(), diagnosis.evidence.begin(), diagnosis.evidence.end());
    log->evidence.push_back(fmt::format("the recordings alone say: {}", diagnosis.finding.headline));
    if (!log->finding.at) {
      log->finding.at = diagnosis.finding.at;
    }
    diagnosis = *std::move(log);
    return;
  }
  diagnosis.evidence.push_back(
      fmt::format("the {} {} instead: {}", are_stacks ? "stacks suggest" : "log names",
                  ranks_phrase(log->finding.culprits), are_stacks ? log->finding.headline : source));
}

}  // namespace

void add_log_evidence(const std::vector<LogFact>& facts, bool has_moved, Diagnosis& diagnosis) {
  weigh(facts, has_moved, diagnosis);
  add_own_error(facts, diagnosis);
}

}  // namespace rollcall::check
