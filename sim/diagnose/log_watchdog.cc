// Judges what the watchdog of ProcessGroupNCCL logs: calls that timed out, and how far each rank had come by then.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/diagnose/log_calls.h"
#include "sim/diagnose/log_judge.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

using Kind = LogFact::Kind;

class WatchdogJudge {
 public:
  explicit WatchdogJudge(const std::vector<LogFact>& facts) : facts_(facts) {
    for (const LogFact& fact : facts) {
      if (fact.kind == Kind::timed_out || fact.kind == Kind::progress) {
        (fact.kind == Kind::timed_out ? timed_out_ : progress_).push_back(&fact);
        if (!fact.group.empty()) {
          groups_.insert(fact.group);
        }
      }
    }
  }

  // Finds the ranks that had not even enqueued a call that timed out for others.
  std::optional<Diagnosis> judge() const {
    const RankSet waiting = ranks_with(facts_, Kind::timed_out);
    if (waiting.empty()) {
      return waits_alone();
    }
    const std::vector<const LogFact*> earliest = earliest_timeouts();
    for (const LogFact* late : earliest) {
      if (std::optional<Diagnosis> different = different_calls(*late)) {
        return different;
      }
    }
    for (const LogFact* late : earliest) {
      if (std::optional<Diagnosis> stuck = unfinished_alone(*late)) {
        return stuck;
      }
    }
    for (const LogFact* late : earliest) {
      if (const RankSet behind = difference(behind_in(*late), waiting); !behind.empty()) {
        return never_issued(*late, behind);
      }
    }
    const RankSet silent = silent_beside(*earliest.front(), waiting);
    if (silent.empty() || silent.size() >= waiting.size()) {
      return std::nullopt;
    }
    Diagnosis diagnosis = not_issued(*earliest.front(), silent, Confidence::low);
    diagnosis.finding.headline =
        fmt::format("{} in {} until the timeout, and {} no such timeout",
                    with_verb(waiting_in(*earliest.front()), "waited", "waited"),
                    call_text(*earliest.front()), with_verb(silent, "reports", "report"));
    diagnosis.finding.cause =
        fmt::format("{} may not have issued the call: only the silence says so", ranks_phrase(silent));
    return diagnosis;
  }

 private:
  // For ranks of which a call timed out, and no line says which: whether the others are done with all that they have
  // enqueued in a group in which it may be.
  std::optional<Diagnosis> waits_alone() const {
    const RankSet waiting = ranks_with(facts_, Kind::told_of_timeout);
    std::set<std::string> ended;  // groups in which it is not
    for (const LogFact* fact : progress_) {
      if (fact->count == fact->seq && waiting.contains(fact->ranks)) {
        ended.insert(fact->group);
      }
    }
    RankSet idle;
    std::string place;
    std::int64_t last = 0;
    for (const LogFact* fact : progress_) {
      if (fact->count == fact->seq && fact->seq > 0 && !waiting.meets(fact->ranks) &&
          !ended.contains(fact->group)) {
        idle.insert(fact->ranks);
        last = std::max(last, fact->seq);
        place = place.empty() ? fact->place() : place;
      }
    }
    if (waiting.empty() || idle.size() <= waiting.size()) {
      return std::nullopt;
    }
    Diagnosis diagnosis = diagnosis_of(FindingKind::extra_collective, Confidence::low, waiting);
    diagnosis.alternatives = {FindingKind::stuck_host, FindingKind::skipped_collective};
    diagnosis.finding.headline =
        fmt::format("{} in a call that {} not issued", with_verb(waiting, "waits", "wait"),
                    with_verb(idle, "has", "have"));
    diagnosis.finding.cause = fmt::format(
        "a call of {} timed out, and {} completed all that {} enqueued, the last #{}", ranks_phrase(waiting),
        with_verb(idle, "has", "have"), is_plural(idle) ? "they have" : "it has", last);
    diagnosis.finding.advice =
        "look for a branch around a collective that depends on the rank, or for a rank that stopped in "
        "between";
    diagnosis.evidence.push_back(fmt::format("{}: what the rank had enqueued and completed", place));
    diagnosis.would_settle.push_back(dumps_would_say);
    return diagnosis;
  }

  // The ranks without a timeout of their own, where their silence says something: it does not in a group of unknown
  // members, nor beside ranks that disagree, nor where Ray left out lines, and a watchdog that stands still reports no
  // timeout.
  RankSet silent_beside(const LogFact& late, const RankSet& waiting) const {
    const bool is_of_some = std::ranges::any_of(timed_out_, [&](const LogFact* fact) {
      return is_same_group(*fact, late) && fact->rank_in_group >= 0 &&
             fact->rank_in_group != fact->ranks.first();
    });
    // Lines of an older torch have no numbers. Ranks in different calls are at different places then, silent or not.
    const bool are_apart = late.seq < 0 && std::ranges::any_of(timed_out_, [&](const LogFact* fact) {
                             return is_same_group(*fact, late) && fact->op != late.op;
                           });
    if (is_of_some || are_apart || first_of(facts_, Kind::repeated) != nullptr) {
      return {};
    }
    const RankSet silent = difference(RankSet::range(0, waiting.ranges().back().last), waiting);
    return difference(silent, ranks_with(facts_, Kind::watchdog_stuck));
  }

  // For calls of one group and number that timed out: whether they are the same.
  std::optional<Diagnosis> different_calls(const LogFact& late) const {
    constexpr std::string_view equal_sizes[] = {"ALLREDUCE",       "BROADCAST", "REDUCE",
                                                "_ALLGATHER_BASE", "ALLGATHER", "_REDUCE_SCATTER_BASE",
                                                "REDUCE_SCATTER"};
    std::map<Rank, const LogFact*> facts;
    std::map<std::string, RankSet> calls;
    for (const LogFact* fact : timed_out_) {
      const bool is_known =
          fact->op != "collective" && !fact->op.empty() && fact->seq == late.seq && late.seq >= 0;
      if (is_known && is_same_group(*fact, late)) {
        const bool has_size = std::ranges::find(equal_sizes, fact->op) != std::end(equal_sizes);
        calls[fact->op + (has_size ? " " + fact->shape : "")].insert(fact->ranks);
        facts[fact->ranks.first()] = fact;
      }
    }
    merge_unknown_sizes(calls);
    if (calls.size() < 2) {
      return std::nullopt;
    }
    const Sides sides = sides_of(calls);
    const LogFact& theirs = *facts.at(sides.other);
    const LogFact& usual = *facts.at(sides.usual);
    Diagnosis diagnosis =
        disagreement(sides.odd, sides.tie ? Confidence::low : Confidence::medium, theirs, usual);
    diagnosis.finding.tie = sides.tie;
    diagnosis.evidence = {fmt::format("{}: {} timed out", theirs.place(), call_text(theirs)),
                          fmt::format("{}: {} timed out", usual.place(), call_text(usual))};
    return diagnosis;
  }

  // A line that is cut before the size says nothing against the others.
  static void merge_unknown_sizes(std::map<std::string, RankSet>& calls) {
    for (auto call = calls.begin(); call != calls.end();) {
      const auto sized = std::ranges::find_if(calls, [&](const auto& other) {
        return call->first.ends_with(' ') && other.first.starts_with(call->first) &&
               other.first != call->first;
      });
      if (sized == calls.end()) {
        ++call;
        continue;
      }
      sized->second.insert(call->second);
      call = calls.erase(call);
    }
  }

  // Of each group the earliest call that timed out.
  std::vector<const LogFact*> earliest_timeouts() const {
    std::map<std::string, const LogFact*> by_group;
    for (const LogFact* fact : timed_out_) {
      const LogFact*& known = by_group[fact->group];
      known = known == nullptr || fact->seq < known->seq ? fact : known;
    }
    std::vector<const LogFact*> earliest;
    for (const auto& [group, fact] : by_group) {
      earliest.push_back(fact);
    }
    return earliest;
  }

  // Numbers of calls count within a group. Lines of an older torch name none: they are comparable if no line names two.
  bool is_same_group(const LogFact& a, const LogFact& b) const {
    if (!a.group.empty() && !b.group.empty()) {
      return a.group == b.group;
    }
    return groups_.size() < 2;
  }

  RankSet waiting_in(const LogFact& late) const {
    RankSet waiting;
    for (const LogFact* fact : timed_out_) {
      waiting.insert(fact->seq == late.seq && is_same_group(*fact, late) ? fact->ranks : RankSet());
    }
    return waiting;
  }

  // The ranks whose watchdog has seen no call as late as this one.
  RankSet behind_in(const LogFact& late) const {
    std::map<Rank, std::int64_t> enqueued;
    for (const LogFact* fact : progress_) {
      if (fact->seq >= 0 && is_same_group(*fact, late)) {
        std::int64_t& last = enqueued.emplace(fact->ranks.first(), fact->seq).first->second;
        last = std::max(last, fact->seq);
      }
    }
    RankSet behind;
    for (const auto& [rank, last] : enqueued) {
      if (last < late.seq) {
        behind.insert(rank);
      }
    }
    return behind;
  }

  Diagnosis not_issued(const LogFact& late, const RankSet& missing, Confidence confidence) const {
    Diagnosis diagnosis = diagnosis_of(FindingKind::stuck_host, confidence, missing);
    diagnosis.alternatives = {FindingKind::early_exit, FindingKind::crashed_rank};
    set_call(late, missing, diagnosis);
    diagnosis.finding.at->waiting = waiting_in(late);
    diagnosis.finding.headline = fmt::format("{} never issued {}", ranks_phrase(missing), call_text(late));
    diagnosis.finding.advice = look_at(missing);
    diagnosis.evidence.push_back(fmt::format("{}: {} timed out", late.place(), call_text(late)));
    diagnosis.would_settle.push_back(
        "Flight Recorder dumps (TORCH_NCCL_DUMP_ON_TIMEOUT=1, TORCH_FR_BUFFER_SIZE=2000)");
    return diagnosis;
  }

  Diagnosis never_issued(const LogFact& late, const RankSet& behind) const {
    const RankSet waiting = waiting_in(late);
    if (waiting.size() > 1 || behind.size() < 2) {
      Diagnosis diagnosis = not_issued(late, behind, Confidence::medium);
      diagnosis.finding.cause =
          fmt::format("the watchdog of {} has seen no later call enqueued", ranks_phrase(behind));
      return diagnosis;
    }
    Diagnosis diagnosis = not_issued(late, behind, Confidence::low);
    diagnosis.finding.kind = FindingKind::extra_collective;
    diagnosis.alternatives = {FindingKind::stuck_host};
    diagnosis.finding.culprits = waiting;
    diagnosis.finding.headline = fmt::format("{} alone issued {}", ranks_phrase(waiting), call_text(late));
    diagnosis.finding.cause = fmt::format("{} not enqueued it", with_verb(behind, "has", "have"));
    diagnosis.finding.advice = "look for a branch around a collective that depends on the rank";
    return diagnosis;
  }

  // For a call on which the watchdogs of some ranks gave up, and which others have completed. If those have completed
  // later ones, too, the ranks' devices do not see the end of it. Otherwise the calls may differ: on NCCL, ranks that
  // move fewer bytes than the others complete their call.
  std::optional<Diagnosis> unfinished_alone(const LogFact& late) const {
    constexpr std::string_view numbered_alone[] = {"COALESCED", "SEND", "RECV"};  // each rank counts its own
    if (late.seq < 0 || std::ranges::find(numbered_alone, late.op) != std::end(numbered_alone)) {
      return std::nullopt;
    }
    RankSet done;
    std::int64_t furthest = 0;
    std::string place;
    for (const LogFact* fact : progress_) {
      // More completed than enqueued: the former counts messages.
      if (fact->count >= late.seq && fact->count <= fact->seq && is_same_group(*fact, late)) {
        done.insert(fact->ranks);
        furthest = std::max(furthest, fact->count);
        place = place.empty() ? fact->place() : place;
      }
    }
    const RankSet waiting = waiting_in(late);
    done = difference(done, waiting);
    if (done.empty()) {
      return std::nullopt;
    }
    // If those wait themselves, in a later call of the group, no device is needed to explain why.
    const LogFact* later = timeout_of(done, late);
    const bool is_blind = furthest > late.seq && later == nullptr;
    Diagnosis diagnosis = is_blind ? blind(waiting) : differing(late, waiting, done);
    set_call(late, {}, diagnosis);
    diagnosis.finding.at->waiting = waiting;
    diagnosis.finding.headline =
        fmt::format("{} not see the end of {}, which {} completed", with_verb(waiting, "does", "do"),
                    call_text(late), with_verb(done, "has", "have"));
    diagnosis.evidence.push_back(fmt::format("{}: {} timed out", late.place(), call_text(late)));
    diagnosis.evidence.push_back(fmt::format("{}: {} completed {}", place, with_verb(done, "has", "have"),
                                             furthest > late.seq ? "a later one" : "this one"));
    if (later != nullptr) {
      diagnosis.evidence.push_back(fmt::format("{}: {} of {} timed out", later->place(), call_text(*later),
                                               ranks_phrase(later->ranks)));
    }
    return diagnosis;
  }

  // Of these ranks, a call that timed out in the same group; null if there is none.
  const LogFact* timeout_of(const RankSet& ranks, const LogFact& late) const {
    const auto found = std::ranges::find_if(timed_out_, [&](const LogFact* fact) {
      return ranks.meets(fact->ranks) && is_same_group(*fact, late);
    });
    return found == timed_out_.end() ? nullptr : *found;
  }

  static Diagnosis blind(const RankSet& waiting) {
    Diagnosis diagnosis = diagnosis_of(FindingKind::stuck_device, Confidence::medium, waiting);
    diagnosis.alternatives = {FindingKind::stuck_host};
    diagnosis.finding.cause = fmt::format("{} not get to the call, or the thread that watches it is stuck",
                                          is_plural(waiting) ? "their devices do" : "its device does");
    diagnosis.finding.advice =
        fmt::format("look for device errors (Xid, ECC, CUDA) on {}", ranks_phrase(waiting));
    return diagnosis;
  }

  static Diagnosis differing(const LogFact& late, const RankSet& waiting, const RankSet& done) {
    const RankSet& odd = waiting.size() < done.size() ? waiting : done;
    Diagnosis diagnosis = diagnosis_of(FindingKind::size_mismatch, Confidence::low, odd);
    diagnosis.finding.tie = waiting.size() == done.size();
    if (diagnosis.finding.tie) {
      diagnosis.finding.culprits.insert(waiting);
    }
    diagnosis.alternatives = {FindingKind::skipped_collective, FindingKind::stuck_device};
    diagnosis.finding.cause = fmt::format(
        "the calls with number {} may differ: NCCL lets ranks whose call is smaller than the others' go on",
        late.seq);
    diagnosis.finding.advice = fmt::format("compare the sizes and dtypes of the call on {} with those on {}",
                                           ranks_phrase(done), ranks_phrase(waiting));
    diagnosis.would_settle.push_back(dumps_would_say);
    return diagnosis;
  }

  const std::vector<LogFact>& facts_;
  std::vector<const LogFact*> timed_out_;
  std::vector<const LogFact*> progress_;
  std::set<std::string> groups_;  // that their lines name
};

}  // namespace

std::optional<Diagnosis> judge_watchdog(const std::vector<LogFact>& facts) {
  return WatchdogJudge(facts).judge();
}

std::optional<Diagnosis> judge_stuck_watchdogs(const std::vector<LogFact>& facts) {
  const RankSet stuck = ranks_with(facts, Kind::watchdog_stuck);
  if (stuck.empty() || log_shows_failure(facts)) {
    return std::nullopt;
  }
  const LogFact& first = *first_of(facts, Kind::watchdog_stuck);
  const std::string whose =
      fmt::format("the {} of {}", is_plural(stuck) ? "watchdogs" : "watchdog", ranks_phrase(stuck));
  Diagnosis diagnosis = undecided();
  diagnosis.finding.headline = fmt::format("{} stood still, and nothing that was read says why", whose);
  diagnosis.finding.cause =
      "the thread that watches the calls of a rank waited itself: in a CUDA or NCCL call, or for the GIL";
  diagnosis.finding.advice =
      "look at all threads, with their native frames: one of them keeps the watchdog waiting";
  diagnosis.evidence.push_back(
      first.count > 0
          ? fmt::format("{}: {} did nothing for {} s", first.place(), whose, first.count)
          : fmt::format("{}: {} did nothing until torch's monitor gave up", first.place(), whose));
  diagnosis.would_settle.push_back(
      fmt::format("the stacks of all threads of {} (py-spy dump --native --pid PID)", ranks_phrase(stuck)));
  diagnosis.would_settle.push_back(dumps_would_say);
  return diagnosis;
}

}  // namespace rollcall::check
