#include "sim/diagnose/dump_judge.h"
#include "sim/diagnose/log_calls.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/log_judge.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

bool shows_no_time(const DumpCase& job) {
  return job.progress == Progress::unclear || job.progress == Progress::silent;
}

// Lowers the confidence if nothing shows that the job stood still. Calls that were left out are a fault whenever they
// are seen; a rank that has not arrived yet may just be in a pause.
void doubt(const DumpCase& job, Diagnosis& diagnosis) {
  const bool left_out = diagnosis.finding.kind == FindingKind::p2p_mismatch ||
                        diagnosis.finding.kind == FindingKind::skipped_collective;
  const bool has_states = std::ranges::all_of(job.view.job.ranks, &RankDump::has_states);
  const bool is_open = shows_no_time(job) || (job.progress == Progress::assumed && has_states);
  if (is_open) {
    diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
    diagnosis.would_settle.push_back(second_dump);
  }
  diagnosis.may_be_healthy = shows_no_time(job) && !left_out;
}

// Says that the diagnosis is undecided: a user has to know that there is nothing to act on yet.
void say_undecided(const DumpCase& job, Diagnosis& diagnosis) {
  if (!diagnosis.may_be_healthy) {
    return;
  }
  diagnosis.confidence = Confidence::low;
  diagnosis.evidence.push_back(
      "nothing shows that time passed: a job in a pause, such as a checkpoint, would leave the same dumps");
  if (const double share = share_of_waiting(job); share >= 0.01) {
    diagnosis.evidence.push_back(
        fmt::format("as many ranks waited for others for {:.0f} % of a usual step", 100 * share));
  }
}

// Adds the reason for a diagnosis that is not certain.
void give_reason(Diagnosis& diagnosis) {
  if (diagnosis.finding.tie) {
    diagnosis.confidence = Confidence::low;
  }
  const bool has_reason =
      !diagnosis.evidence.empty() || !diagnosis.would_settle.empty() || diagnosis.finding.repair;
  if (diagnosis.confidence != Confidence::high && !has_reason) {
    diagnosis.would_settle.emplace_back(
        "the host stacks of all ranks (py-spy dump): the recorded calls would fit other mistakes, too");
  }
}

// Asks the judges in order of how much they prove. Calls that disagree, and cycles, are faults whenever they are
// seen. A rank that has not arrived yet is a fault only when time has passed.
Diagnosis find_fault(const DumpCase& job) {
  using Judge = std::optional<Diagnosis> (*)(const DumpCase& job);
  for (const Judge judge :
       {judge_join, judge_mismatch, judge_splits, judge_ahead, judge_blind, judge_cycle}) {
    if (std::optional<Diagnosis> diagnosis = judge(job)) {
      return *diagnosis;
    }
  }
  if (shows_no_time(job)) {
    if (std::optional<Diagnosis> late = judge_late(job)) {
      return *late;
    }
  }
  if (may_hang(job)) {
    for (const Judge judge : {judge_absence, judge_device, judge_lost, judge_unlisted, judge_stall}) {
      if (std::optional<Diagnosis> diagnosis = judge(job)) {
        doubt(job, *diagnosis);
        return *diagnosis;
      }
    }
  }
  if (std::optional<Diagnosis> unlisted = judge_unlisted(job)) {
    unlisted->may_be_healthy = shows_no_time(job);
    return *unlisted;
  }
  if (std::optional<Diagnosis> ended = judge_ended(job)) {
    return *ended;
  }
  return judge_quiet(job);
}

void add_counts(const JobDump& job, Diagnosis& diagnosis) {
  Rank last = job.ranks.back().rank;
  for (const DumpGroup& group : job.groups) {
    if (!group.members.empty()) {
      last = std::max(last, group.members.back());
    }
  }
  diagnosis.world_size = last + 1;
  for (const RankDump& dump : job.ranks) {
    diagnosis.records += static_cast<std::int64_t>(dump.records.size());
  }
  diagnosis.without_dump = ranks_without_dump(job);
}

// A second dump of the ranks answers the questions that one leaves open.
void add_moments(const DumpCase& job, Diagnosis& diagnosis) {
  RankSet twice;
  for (const RankDump& dump : job.view.job.earlier) {
    twice.insert(dump.rank);
  }
  if (twice.empty()) {
    return;
  }
  std::erase(diagnosis.would_settle, second_dump);
  const bool stood_still = stands_still(job.progress);
  diagnosis.evidence.push_back(
      fmt::format("there are two dumps of {}, and {}", ranks_phrase(twice),
                  stood_still ? "nothing moved between them"
                  : !ranks_with_calls_between(job.view.job).empty()
                      ? "calls were made between them"
                      : "no call was made between them; those that ended may have failed"));
  // Calls that disagree are a fault at once. A rank that has not come yet may be in a pause.
  if (job.progress == Progress::still && diagnosis.finding.kind == FindingKind::stuck_host) {
    diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
    diagnosis.would_settle.emplace_back(
        "the time between the two dumps: a pause that is longer, such as a checkpoint, looks the same");
  }
}

// Calls of several groups that are lined up as one group's disagree even if nothing is wrong.
void doubt_groups(const JobDump& job, Diagnosis& diagnosis) {
  const bool are_unknown = !std::ranges::all_of(job.ranks, &RankDump::knows_groups);
  if (are_unknown && !diagnosis.finding.culprits.empty()) {
    diagnosis.confidence = Confidence::low;
    diagnosis.would_settle.push_back(
        "recordings that name the group of each call: these do not, so all calls were assumed to be of one "
        "group");
  }
}

// True if stacks show ranks in calls, these ranks have no recorded call that is open, and nothing shows that the job
// moves: it may stand in calls that its recorder skips, as those that DETAIL makes before each collective.
bool may_stand_unrecorded(const DumpCase& job) {
  RankSet open;
  for (const RankDump& dump : job.view.job.ranks) {
    open.insert(std::ranges::all_of(dump.records, &DumpRecord::is_over) ? RankSet() : RankSet{dump.rank});
  }
  return job.progress != Progress::running &&
         std::ranges::any_of(job.view.job.facts, [&open](const LogFact& fact) {
           return fact.is_stack_in_call() && !open.contains(fact.ranks);
         });
}

// True if every rank that is not one of these waits in a recorded call.
bool all_wait_but(const DumpCase& investigation, const RankSet& ranks) {
  return ranks_without_dump(investigation.view.job).empty() &&
         std::ranges::all_of(investigation.view.job.ranks, [&](const RankDump& dump) {
           return ranks.contains(dump.rank) || investigation.waits.node_of.contains(dump.rank);
         });
}

// For ranks whose stacks show them in a message, while all others wait for them. Which rank they name there is unknown.
void say_unanswered(const LogFact& stack, const RankSet& ranks, Diagnosis& diagnosis) {
  Finding finding;
  finding.kind = FindingKind::p2p_mismatch;
  finding.at = Place{{}, ranks, {}};
  finding.at->call.op = stack.op;
  finding.at->call.site = stack.site;
  finding.headline =
      fmt::format("{} in {}, and all other ranks wait for {}: nobody is left to answer",
                  with_verb(ranks, "waits", "wait"), stack.op, is_plural(ranks) ? "them" : "it");
  finding.cause =
      fmt::format("{}the other end has gone past that message: it left it out, or named another rank",
                  is_plural(ranks) ? "they wait for each other, or " : "");
  finding.advice = fmt::format("find out which rank {} there; post one recv for every send",
                               with_verb(ranks, "names", "name"));
  diagnosis.finding = std::move(finding);
  diagnosis.alternatives.clear();
  diagnosis.is_message = true;
  diagnosis.group_name.clear();
  diagnosis.group_description.clear();
  diagnosis.group_ranks = {};
  diagnosis.would_settle = {"what the ranks did in the place of the other end of that message"};
}

// If ranks are called stuck in host code, and stacks show every one of them in a call that its recorder skips, they
// wait there for others. The same is true of any call if the confidence is low.
void clear_ranks_in_calls(const DumpCase& investigation, Diagnosis& diagnosis) {
  if (diagnosis.finding.kind != FindingKind::stuck_host) {
    return;
  }
  const RankSet culprits = diagnosis.finding.culprits;
  const RankSet without_messages = ranks_without_messages(investigation);
  RankSet in_messages;
  const LogFact* shown = nullptr;
  for (const LogFact& fact : investigation.view.job.facts) {
    if (fact.is_stack_in_call() && is_message(fact.op) && without_messages.contains(fact.ranks)) {
      in_messages.insert(fact.ranks);
      shown = shown == nullptr && culprits.contains(fact.ranks.first()) ? &fact : shown;
    }
  }
  const bool are_in_messages = shown != nullptr && in_messages.contains(culprits);
  if (are_in_messages && all_wait_but(investigation, culprits)) {
    say_unanswered(*shown, culprits, diagnosis);
    return;
  }
  const bool are_in_calls = diagnosis.confidence == Confidence::low &&
                            ranks_in_calls(investigation.view.job.facts).contains(culprits);
  if (!are_in_messages && !are_in_calls) {
    return;
  }
  const std::string they_wait = with_verb(culprits, "waits", "wait");
  diagnosis.finding = {};
  diagnosis.finding.kind = FindingKind::no_fault;
  diagnosis.alternatives.clear();
  diagnosis.evidence = {fmt::format("{} in calls themselves, as their stacks show", they_wait)};
  diagnosis.would_settle = {fmt::format("the lines in which {}: which ranks those calls need", they_wait)};
}

// What a fact says of its ranks, with a verb; empty if it does not say what they did.
std::string act_of(const LogFact& fact, bool are_many) {
  const std::string at = fact.site.empty() ? "" : " at " + fact.site;
  switch (fact.kind) {
    case LogFact::Kind::stack:
      return fmt::format("{} in {}{}{}", are_many ? "are" : "is", fact.op.empty() ? fact.text : fact.op, at,
                         fact.op.empty() ? ", in no call" : "");
    case LogFact::Kind::timed_out:
      return fmt::format("{} in {}{}{}, which timed out", are_many ? "wait" : "waits", call_text(fact),
                         fact.group.empty() ? "" : " on " + fact.group, at);
    case LogFact::Kind::told_of_timeout:
      return fmt::format("{} in a call that timed out, and no line says in which",
                         are_many ? "wait" : "waits");
    case LogFact::Kind::watchdog_stuck:
      return are_many ? "have watchdogs that stood still" : "has a watchdog that stood still";
    case LogFact::Kind::gave_up:
    case LogFact::Kind::lost_peer:
      return fmt::format("{} \"{}\"{}", are_many ? "report" : "reports", fact.text, at);
    default:
      return "";
  }
}

// Equal acts once, with the first place that tells of them.
void list_what_is_known(const std::vector<LogFact>& facts, std::vector<std::string>& evidence) {
  struct Act {
    const LogFact* first = nullptr;
    RankSet ranks;
  };
  std::map<std::string, Act> acts;
  for (const LogFact& fact : facts) {
    const std::string act = fact.ranks.empty() ? "" : act_of(fact, false);
    if (!act.empty()) {
      Act& known = acts.try_emplace(act, Act{&fact, {}}).first->second;
      known.ranks.insert(fact.ranks);
    }
  }
  for (const auto& [text, act] : acts) {
    evidence.push_back(fmt::format("{}: {} {}", act.first->place(), ranks_phrase(act.ranks),
                                   act_of(*act.first, is_plural(act.ranks))));
  }
}

// A job that waits, or has given up, is not healthy: it is only unknown which rank is to blame.
void say_nothing_found(const JobDump& job, Diagnosis& diagnosis) {
  diagnosis.finding.kind = FindingKind::no_fault;
  diagnosis.confidence = Confidence::low;
  diagnosis.may_be_healthy = true;
  diagnosis.finding.headline =
      log_shows_timeout(job.facts)
          ? "a log says that a call timed out, and nothing that was read says who is to blame"
      : log_shows_failure(job.facts)
          ? "a log says that calls failed, and nothing that was read says who is to blame"
          : "nothing that was read blames any rank, and nothing shows that the job is running";
  list_what_is_known(job.facts, diagnosis.evidence);
}

// If there are stacks of all ranks, asking for stacks does not help.
void ask_for_no_more_stacks(const std::vector<LogFact>& facts, Diagnosis& diagnosis) {
  const RankSet seen = ranks_with(facts, LogFact::Kind::stack);
  if (diagnosis.world_size > 0 && seen == RankSet::range(0, diagnosis.world_size - 1)) {
    std::erase_if(diagnosis.would_settle,
                  [](const std::string& text) { return text.find("py-spy") != std::string::npos; });
  }
}

Diagnosis judge_log_alone(const JobDump& job) {
  Diagnosis diagnosis;
  if (std::optional<Diagnosis> found = judge_log(job.facts)) {
    diagnosis = *std::move(found);
  } else {
    say_nothing_found(job, diagnosis);
    diagnosis.would_settle.push_back(
        "Flight Recorder dumps (TORCH_NCCL_DUMP_ON_TIMEOUT=1, TORCH_FR_BUFFER_SIZE=2000)");
    diagnosis.would_settle.push_back("host stacks of all ranks (py-spy dump)");
    diagnosis.would_settle.push_back("logs of a run with TORCH_DISTRIBUTED_DEBUG=DETAIL");
  }
  for (const LogFact& fact : job.facts) {
    if (!fact.ranks.empty()) {
      diagnosis.world_size = std::max(diagnosis.world_size, fact.ranks.ranges().back().last + 1);
    }
  }
  ask_for_no_more_stacks(job.facts, diagnosis);
  return diagnosis;
}

// Ranks whose log says that a recorded call failed. Messages, monitored_barrier and calls about groups are not
// recorded.
RankSet failed_by_logs(const JobDump& job) {
  return ranks_where(job.facts, [](const LogFact& fact) {
    constexpr std::array<std::string_view, 4> unrecorded = {"send", "recv", "monitored_barrier", "group"};
    const bool is_recorded = std::ranges::none_of(
        unrecorded, [&fact](std::string_view word) { return fact.op.find(word) != std::string::npos; });
    return is_recorded && (fact.kind == LogFact::Kind::gave_up || fact.kind == LogFact::Kind::lost_peer);
  });
}

// True if a member of the call's group has a dump, and has not made this call. A collective with a root may be over
// without some members; the others are not.
bool lacks_member(const JobDump& job, const DumpRecord& record) {
  const std::vector<Rank>& members = job.groups[record.group].members;
  return !record.is_p2p && !has_root(job.calls[record.call].op) &&
         std::ranges::any_of(job.ranks, [&](const RankDump& dump) {
           return std::ranges::binary_search(members, dump.rank) &&
                  std::ranges::none_of(dump.records, [&record](const DumpRecord& other) {
                    return other.group == record.group && other.collective_seq >= record.collective_seq;
                  });
         });
}

// Ranks whose last call was open in an earlier dump, and is over although a member has not made it by now: it failed.
RankSet failed_between_moments(const JobDump& job) {
  RankSet failed;
  for (const RankDump& before : job.earlier) {
    const RankDump* now = find_rank(job.ranks, before.rank, &RankDump::rank);
    const bool made_no_call = now != nullptr && !now->records.empty() && !before.records.empty() &&
                              now->records.back().created_ns == before.records.back().created_ns;
    if (made_no_call && !before.records.back().is_over() && lacks_member(job, now->records.back())) {
      failed.insert(before.rank);
    }
  }
  return failed;
}

// Gloo's recorder retires a call that failed like one that succeeded. If something else says that a call of a rank
// failed, it is the rank's last one, and it is not over.
std::optional<JobDump> with_failed_calls(const JobDump& job) {
  RankSet failed = failed_by_logs(job);
  failed.insert(failed_between_moments(job));
  const auto has_failed = [&failed](const RankDump& dump) {
    return failed.contains(dump.rank) && !dump.records.empty() &&
           dump.records.back().state == DumpRecord::State::ended;
  };
  if (std::ranges::none_of(job.ranks, has_failed)) {
    return std::nullopt;
  }
  JobDump changed = job;
  for (RankDump& dump : changed.ranks) {
    if (has_failed(dump)) {
      dump.records.back().state = DumpRecord::State::scheduled;
    }
  }
  return changed;
}

Diagnosis judge_recorded(const JobDump& job) {
  const DumpCase investigation(job);
  Diagnosis diagnosis = find_fault(investigation);
  mend(investigation, diagnosis);
  say_undecided(investigation, diagnosis);
  doubt_groups(job, diagnosis);
  if (diagnosis.finding.kind != FindingKind::no_fault && diagnosis.finding.kind != FindingKind::straggler) {
    add_victims(investigation, diagnosis);
  }
  add_moments(investigation, diagnosis);
  diagnosis.without_dump =
      ranks_without_dump(job);  // logs are weighed against it, and may replace the diagnosis
  add_log_evidence(job.facts, investigation.progress == Progress::running, diagnosis);
  clear_ranks_in_calls(investigation, diagnosis);
  if (diagnosis.finding.kind == FindingKind::no_fault &&
      (log_shows_failure(job.facts) || may_stand_unrecorded(investigation) ||
       diagnosis.finding.headline.empty())) {
    say_nothing_found(job, diagnosis);
    if (std::ranges::none_of(job.facts, &LogFact::is_stack_in_call)) {
      diagnosis.would_settle.push_back("host stacks of all ranks while the job hangs (py-spy dump)");
    }
  }
  give_reason(diagnosis);
  add_counts(job, diagnosis);
  ask_for_no_more_stacks(job.facts, diagnosis);
  return diagnosis;
}

}  // namespace

Diagnosis judge_dump(const JobDump& job) {
  expects(!job.ranks.empty() || !job.facts.empty(), "a job has the dump of at least one rank, or a log");
  if (job.ranks.empty()) {
    return judge_log_alone(job);
  }
  Diagnosis diagnosis = judge_recorded(job);
  const std::optional<JobDump> changed = with_failed_calls(job);
  if (!changed ||
      (diagnosis.confidence == Confidence::high && diagnosis.finding.kind != FindingKind::no_fault)) {
    return diagnosis;
  }
  Diagnosis with_failures = judge_recorded(*changed);
  return with_failures.finding.kind == FindingKind::no_fault ? diagnosis : with_failures;
}

}  // namespace rollcall::check
