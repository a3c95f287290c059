// Ranks that owe a call and wait for nothing: they are stuck on the host, have left the loop, or lack the group.

#include <algorithm>
#include <map>
#include <string>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"
#include "sim/diagnose/dump_habits.h"
#include "sim/diagnose/log_calls.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

class AbsenceJudge {
 public:
  AbsenceJudge(const DumpCase& job, RankSet absent) : job_(job), absent_(std::move(absent)) {}

  Diagnosis judge_idle() {
    Diagnosis diagnosis = explain_idle();
    add_unknown(diagnosis);
    doubt_messages(diagnosis);
    return diagnosis;
  }

 private:
  Diagnosis explain_idle() {
    const WaitNode& node = telling_node(job_, absent_);
    if (const RankSet strayed = ranks_that_left_out_messages(); !strayed.empty()) {
      return unrecorded_messages(strayed);
    }
    if (is_lone_call()) {
      return lone_call(node);
    }
    if (const RankSet outsiders = without_group(); !outsiders.empty()) {
      return partial_subgroup(outsiders);
    }
    using Judge = std::optional<Diagnosis> (AbsenceJudge::*)(const WaitNode& node) const;
    for (const Judge judge :
         {&AbsenceJudge::went_elsewhere, &AbsenceJudge::went_past_message, &AbsenceJudge::left_out_earlier}) {
      if (std::optional<Diagnosis> diagnosis = (this->*judge)(node)) {
        return *std::move(diagnosis);
      }
    }
    keep_who_stopped_first();
    return stuck_host(telling_node(job_, absent_));
  }

  // True if all waiting ranks wait in one call that more ranks have left out: the waiting ones do what the
  // others do not. Stacks that show the others in their own code say that they have not come yet.
  bool is_lone_call() const {
    return job_.waits.nodes.size() == 1 && job_.waits.node_of.size() < absent_.size() &&
           !ranks_in_no_call(job_.view.job.facts).contains(absent_);
  }

  Diagnosis lone_call(const WaitNode& node) const {
    Diagnosis diagnosis = diagnosis_of(FindingKind::extra_collective, Confidence::medium, ranks_of(node));
    Finding& finding = diagnosis.finding;
    set_place(job_, node, absent_, diagnosis);
    finding.headline =
        fmt::format("{} alone made {}", ranks_phrase(finding.culprits), call_phrase(finding.at->call));
    finding.cause = fmt::format("{} {} and never {} it", ranks_phrase(absent_),
                                ranks_in_calls(job_.view.job.facts).contains(absent_)
                                    ? is_plural(absent_) ? "wait in other calls" : "waits in another call"
                                : is_plural(absent_) ? "have nothing left to do"
                                                     : "has nothing left to do",
                                is_plural(absent_) ? "make" : "makes");
    finding.advice = "make the call on all ranks or on none: look for a branch on the rank around it";
    diagnosis.alternatives = {FindingKind::stuck_host};
    doubt_start(diagnosis);
    return diagnosis;
  }

  // Ranks that wait in a call that they always made after a certain number of messages, and this time after another
  // number. Gloo's recorder keeps no messages, but counts them.
  RankSet ranks_that_left_out_messages() const {
    RankSet strayed;
    for (const WaitNode& node : job_.waits.nodes) {
      for (std::size_t i = 0; i < node.ranks.size(); ++i) {
        if (breaks_with_its_messages(*job_.view.ops_of(node.ranks[i]), *node.ops[i])) {
          strayed.insert(node.ranks[i]);
        }
      }
    }
    return strayed;
  }

  static bool breaks_with_its_messages(const RankOps& ops, const DumpOp& op) {
    const DumpRecord& here = ops.record_of(op);
    std::vector<std::uint32_t> before;  // each earlier one of these calls: how many messages before it
    for (const DumpOp& earlier : ops.ops) {
      const DumpRecord& record = ops.record_of(earlier);
      if (&earlier == &op) {
        break;
      }
      if (record.group == here.group && record.call == here.call && record.stack == here.stack) {
        before.push_back(record.unrecorded);
      }
    }
    // The messages before the first one are unknown.
    return before.size() > 2 && before.back() != here.unrecorded &&
           std::all_of(before.begin() + 1, before.end(),
                       [&before](std::uint32_t count) { return count == before.back(); });
  }

  bool has_lines(const RankOps& ops) const {
    return std::ranges::any_of(ops.dump->records, [this](const DumpRecord& record) {
      return !job_.view.job.stacks[record.stack].empty();
    });
  }

  Diagnosis unrecorded_messages(const RankSet& strayed) const {
    Diagnosis diagnosis = diagnosis_of(FindingKind::p2p_mismatch, Confidence::medium, strayed);
    Finding& finding = diagnosis.finding;
    diagnosis.alternatives = {FindingKind::stuck_host};
    if (!has_lines(*job_.view.ops_of(strayed.first()))) {  // calls of other lines look like the same call
      diagnosis.confidence = Confidence::low;
      diagnosis.would_settle.emplace_back("dumps with stacks: torch's pickles have them, its JSON has none");
    }
    const WaitNode* node = &telling_node(job_, absent_);
    for (const WaitNode& each : job_.waits.nodes) {
      node = strayed.contains(each.ranks.front()) ? &each : node;
    }
    set_place(job_, *node, absent_, diagnosis);
    finding.headline = fmt::format("{} made {} after a different number of messages than before",
                                   ranks_phrase(strayed), call_phrase(finding.at->call));
    finding.cause =
        fmt::format("{} may wait for a message that was never sent or received", ranks_phrase(absent_));
    finding.advice = "post one recv for every send, between the same two ranks and in the same order";
    diagnosis.evidence.push_back(
        "Gloo's recorder keeps no messages, but counts them between the calls that it keeps");
    return diagnosis;
  }

  // A rank that waits in a Gloo message looks like one that does nothing.
  void doubt_messages(Diagnosis& diagnosis) const {
    if (!has_unrecorded_messages(job_) && !waits_unrecorded()) {
      return;
    }
    if (diagnosis.finding.kind != FindingKind::p2p_mismatch) {
      diagnosis.confidence = Confidence::low;
      diagnosis.alternatives.push_back(FindingKind::p2p_mismatch);
    }
    diagnosis.would_settle.push_back(
        fmt::format("the host stacks of {} (py-spy dump): Gloo's recorder keeps no messages, so a rank that "
                    "waits in one looks like one that does nothing",
                    ranks_phrase(absent_)));
  }

  // True if the stack of an absent rank shows that it waits in a call that its recorder skips.
  bool waits_unrecorded() const {
    return std::ranges::any_of(job_.view.job.facts, [this](const LogFact& fact) {
      return fact.is_stack_in_call() && absent_.contains(fact.ranks.first()) &&
             ranks_without_messages(job_).contains(fact.ranks.first());
    });
  }

  RankSet without_group() const {
    RankSet ranks;
    for (const WaitNode& node : job_.waits.nodes) {
      ranks.insert(intersection(blockers_of(node, Blocker::Why::no_group), absent_));
    }
    return ranks;
  }

  Diagnosis partial_subgroup(const RankSet& outsiders) const {
    const WaitNode* node = nullptr;
    for (const WaitNode& each : job_.waits.nodes) {
      node = blockers_of(each, Blocker::Why::no_group).meets(outsiders) ? &each : node;
    }
    expects(node != nullptr, "ranks outside a group are waited for in it");
    Diagnosis diagnosis = never_used(job_, *node, outsiders);
    diagnosis.alternatives = {FindingKind::stuck_host};
    const std::string group = group_phrase(job_.view.job.groups[node->group]);
    diagnosis.finding.cause =
        fmt::format("{} is not in the pg_config of {}, though a member", group, ranks_phrase(outsiders));
    diagnosis.evidence.push_back(fmt::format(
        "it is the first call on {}: a rank that was stuck before it would look the same", group));
    return diagnosis;
  }

  // True if `op` of another rank would be the other end of a message that a rank waits in.
  bool would_answer(const RankOps& ops, const DumpOp& op, const WaitNode& node) const {
    const JobDump& job = job_.view.job;
    const auto meet = [&job](const DumpRecord& a, const DumpRecord& b) {
      const DumpCall& one = job.calls[a.call];
      const DumpCall& other = job.calls[b.call];
      return one.is_message() && other.is_message() && a.group == b.group && one.op != other.op &&
             one.source == other.source && one.destination == other.destination;
    };
    const RankOps& waiting = *job_.view.ops_of(node.ranks.front());
    return std::ranges::any_of(waiting.parts_of(*node.ops.front()), [&](std::uint32_t record) {
      return std::ranges::any_of(ops.parts_of(op), [&](std::uint32_t own) {
        return meet(waiting.dump->records[record], ops.dump->records[own]);
      });
    });
  }

  // For a rank that waits for a message with a new peer, in a place where it used to exchange one with a rank that now
  // waits for it: it names the wrong peer.
  std::optional<Diagnosis> went_elsewhere(const WaitNode& node) const {
    if (node.kind == DumpOp::Kind::collective) {
      return std::nullopt;
    }
    const Rank rank = node.ranks.front();
    const RankOps& ops = *job_.view.ops_of(rank);
    const std::optional<Departure> departure = find_departure(ops, *node.ops.front());
    if (!departure || departure->op != node.ops.front() || departure->context < 2) {
      return std::nullopt;
    }
    const bool is_missed = std::ranges::any_of(job_.waits.nodes, [&](const WaitNode& other) {
      return would_answer(ops, *departure->expected, other);
    });
    if (!is_missed) {
      return std::nullopt;
    }
    Diagnosis diagnosis = diagnosis_of(FindingKind::p2p_mismatch, Confidence::high, {rank});
    Finding& finding = diagnosis.finding;
    set_place(job_, node, absent_, diagnosis);
    finding.headline = fmt::format("rank {} addresses another rank in {} than the one that waits for it",
                                   rank, call_phrase(finding.at->call));
    finding.cause =
        fmt::format("it called {}; at this point of earlier steps it called {}",
                    call_phrase(finding.at->call), call_phrase(name_call(job_, ops, *departure->expected)));
    finding.advice = "check the peer that is passed there: a group's own ranks, or a neighbor off by one";
    return diagnosis;
  }

  // For a rank that owes a message and broke with its habit: it is not late, but has left the message out.
  std::optional<Diagnosis> went_past_message(const WaitNode& node) const {
    if (node.kind == DumpOp::Kind::collective || absent_.size() != 1) {
      return std::nullopt;
    }
    const RankOps& ops = *job_.view.ops_of(absent_.first());
    if (ops.ops.empty()) {
      return std::nullopt;
    }
    const std::optional<Departure> departure = find_departure(ops, ops.ops.back());
    if (!departure || departure->context < 2 || !would_answer(ops, *departure->expected, node) ||
        departure->context < static_cast<std::size_t>(departure->op - departure->expected)) {
      return std::nullopt;
    }
    Diagnosis diagnosis = diagnosis_of(FindingKind::p2p_mismatch, Confidence::high, absent_);
    Finding& finding = diagnosis.finding;
    set_place(job_, node, absent_, diagnosis);
    // A loop inside a step ends at some time, which is a departure from its habit, too.
    const bool is_step = std::any_of(departure->expected, departure->op,
                                     [](const DumpOp& op) { return op.kind == DumpOp::Kind::collective; });
    const bool is_past_known = ops.dump->from_start;
    if (!is_past_known || !is_step) {
      diagnosis.confidence = Confidence::medium;
      diagnosis.alternatives = {FindingKind::stuck_host};
    }
    finding.headline = fmt::format("{} skipped a message and continued", ranks_phrase(absent_));
    finding.cause = fmt::format("{} is never answered", call_phrase(finding.at->call));
    finding.advice = "post one recv for every send, between the same two ranks and in the same order";
    diagnosis.evidence.push_back(
        fmt::format("rank {} made another call; at this point of earlier {} it posted a message",
                    absent_.first(), is_step ? "steps" : "iterations"));
    return diagnosis;
  }

  // For a rank whose calls all paired, but the last ones came from other places than the others': it has left out a
  // call whose successors look the same.
  std::optional<Diagnosis> left_out_earlier(const WaitNode& node) const {
    if (node.kind != DumpOp::Kind::collective || absent_.size() != 1) {
      return std::nullopt;
    }
    const GroupCalls& group = job_.view.calls_of(node.group);
    const GroupMember* odd = group.member(absent_.first());
    const GroupMember* usual = group.member(node.ranks.front());
    if (odd == nullptr || usual == nullptr || odd->collectives.empty() || node.position <= 1) {
      return std::nullopt;
    }
    const Shift shift = find_shift(job_.view, *odd, *usual, node.position);
    if (shift.kind != Shift::Kind::skipped || shift.position >= node.position) {
      return std::nullopt;
    }
    Diagnosis diagnosis = diagnosis_of(FindingKind::skipped_collective, Confidence::medium, absent_);
    Finding& finding = diagnosis.finding;
    set_place(job_, node, absent_, diagnosis);
    diagnosis.first_symptom_seq = finding.at->call.seq;
    if (const DumpOp* op = usual->at(shift.position)) {
      finding.at->call = name_call(job_, *usual->ops, *op);
    }
    finding.headline = fmt::format("{} left out {}; its next calls met the wrong ones", ranks_phrase(absent_),
                                   call_phrase(finding.at->call));
    finding.cause = "the calls after it agree in size and dtype, so they paired with each other unnoticed";
    finding.advice = "look for a branch around that call that depends on the rank or on local data";
    return diagnosis;
  }

  // Of Gloo's ranks that owe different calls, keeps the one that has made fewer than all others: the others may wait
  // for it in messages, which are not recorded, and it cannot wait for what they did later.
  void keep_who_stopped_first() {
    if (!ranks_without_dump(job_.view.job).empty() || !ranks_without_messages(job_).contains(absent_)) {
      return;
    }
    std::vector<std::pair<std::size_t, Rank>> made;
    for (const Rank rank : absent_.to_vector()) {
      made.emplace_back(job_.view.ops_of(rank)->ops.size(), rank);
    }
    std::ranges::sort(made);
    if (made.size() > 1 && made[0].first < made[1].first) {
      absent_ = {made[0].second};
    }
  }

  Diagnosis stuck_host(const WaitNode& node) const {
    const bool is_known = job_.progress == Progress::standstill;
    Diagnosis diagnosis =
        diagnosis_of(FindingKind::stuck_host, is_known ? Confidence::high : Confidence::medium, absent_);
    Finding& finding = diagnosis.finding;
    diagnosis.alternatives = {FindingKind::early_exit};
    set_place(job_, node, absent_, diagnosis);
    place_where_it_stopped(node, diagnosis);
    const std::string call = call_phrase(finding.at->call);
    finding.headline = node.kind == DumpOp::Kind::collective
                           ? fmt::format("{} never issued {}", ranks_phrase(absent_), call)
                           : fmt::format("{} never answered {} of {}", ranks_phrase(absent_), call,
                                         ranks_phrase(ranks_of(node)));
    finding.cause = fmt::format(
        "{} nothing unfinished and {} no further calls: {} stuck in host code, or {} left the loop early",
        with_verb(absent_, "has", "have"), is_plural(absent_) ? "issue" : "issues",
        is_plural(absent_) ? "they are" : "it is", is_plural(absent_) ? "they" : "it");
    finding.advice = fmt::format(
        "check what {} did after the last recorded call: data loading, a lock, an exception handler, the "
        "end of its data",
        ranks_phrase(absent_));
    for (const Rank rank : absent_.to_vector()) {
      add_last_call(rank, diagnosis);
    }
    add_stacks(diagnosis);
    doubt_peer(node, diagnosis);
    doubt_start(diagnosis);
    doubt_quiet_job(diagnosis);
    doubt_crowd(ranks_of(node), diagnosis);
    return diagnosis;
  }

  // Many ranks that stand in one line hardly got stuck there one by one.
  void doubt_crowd(const RankSet& waiting, Diagnosis& diagnosis) const {
    std::map<std::string, RankSet> by_site;
    for (const LogFact& fact : job_.view.job.facts) {
      if (fact.kind == LogFact::Kind::stack && !fact.site.empty()) {
        by_site[fact.site].insert(fact.ranks);
      }
    }
    const auto crowd = std::ranges::find_if(by_site, [&](const auto& entry) {
      return entry.second.contains(absent_) && absent_.size() > waiting.size();
    });
    if (crowd != by_site.end()) {
      diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
      diagnosis.evidence.push_back(fmt::format(
          "{} all stand at {}: what they wait for there, such as a key of the store or a file, may be owed "
          "by {}",
          ranks_phrase(absent_), crowd->first, ranks_phrase(waiting)));
    }
  }

  // If the rank that waits in a message for the absent rank also keeps another rank waiting in a message, it may have
  // named the wrong peer.
  void doubt_peer(const WaitNode& node, Diagnosis& diagnosis) const {
    const Rank rank = node.ranks.front();
    const auto waits_for_it = [&](const WaitNode& other) {
      return other.kind != DumpOp::Kind::collective && blockers_of(other).contains(rank);
    };
    if (node.kind == DumpOp::Kind::collective || std::ranges::none_of(job_.waits.nodes, waits_for_it)) {
      return;
    }
    diagnosis.alternatives.push_back(FindingKind::p2p_mismatch);
    diagnosis.confidence = Confidence::low;
    diagnosis.evidence.push_back(fmt::format(
        "another rank waits for a message between itself and rank {}, which may have named the wrong rank",
        rank));
  }

  // If most ranks have nothing unfinished, either, they hardly all got stuck or left: they may wait in one call that is
  // not recorded, for a rank that is elsewhere.
  void doubt_quiet_job(Diagnosis& diagnosis) const {
    RankSet quiet;
    for (const RankOps& ops : job_.view.ranks) {
      if (!ops.ops.empty() && !job_.waits.node_of.contains(ops.rank()) && !absent_.contains(ops.rank())) {
        quiet.insert(ops.rank());
      }
    }
    if (2 * quiet.size() < job_.view.ranks.size()) {
      return;
    }
    diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
    diagnosis.evidence.push_back(
        fmt::format("{} nothing unfinished, either: they may all wait where nothing is recorded, as in the "
                    "first call on a group, whose communicator is being made",
                    with_verb(quiet, "has", "have")));
    diagnosis.would_settle.emplace_back("the host stacks of all ranks (py-spy dump)");
  }

  // Before its first recorded call a rank waits in calls that are not recorded, and several ranks may wait there for
  // each other.
  void doubt_start(Diagnosis& diagnosis) const {
    RankSet silent;
    for (const RankOps& ops : job_.view.ranks) {
      if (ops.ops.empty()) {
        silent.insert(ops.dump->rank);
      }
    }
    if (!silent.empty()) {
      const bool may_be_in_messages = silent.meets(ranks_without_messages(job_));
      diagnosis.confidence =
          std::max(diagnosis.confidence,
                   is_plural(silent) || may_be_in_messages ? Confidence::low : Confidence::medium);
      diagnosis.evidence.push_back(
          fmt::format("{} no calls: the store, and the making of a group or a communicator, are not recorded",
                      with_verb(silent, "has recorded", "have recorded")));
    }
  }

  // Adds where the ranks are, if their stacks are known; otherwise asks for the stacks.
  void add_stacks(Diagnosis& diagnosis) const {
    RankSet unseen = absent_;
    for (const LogFact& fact : job_.view.job.facts) {
      if (fact.kind == LogFact::Kind::stack && unseen.contains(fact.ranks.first())) {
        unseen = difference(unseen, fact.ranks);
        diagnosis.evidence.push_back(stack_line(fact, fact.ranks));
      }
    }
    if (!unseen.empty()) {
      diagnosis.would_settle.push_back(
          fmt::format("the host stack of {} (py-spy dump --pid): inside the loop it is stuck, past the loop "
                      "it left early",
                      ranks_phrase(unseen)));
      doubt_silence(unseen, diagnosis);
    }
  }

  // Gloo's recorder does not show where an absent rank is: it may wait for one of those that wait for it.
  void doubt_silence(const RankSet& unseen, Diagnosis& diagnosis) const {
    const RankSet silent = intersection(unseen, ranks_without_messages(job_));
    if (!silent.empty()) {
      diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
      diagnosis.evidence.push_back(fmt::format(
          "{} may wait for another rank in a message, the store or new_group: Gloo's recorder keeps "
          "collectives only",
          ranks_phrase(silent)));
    }
  }

  // If the rings have lost the call at which the culprit stopped, its own last call still says which one it was,
  // or the counters of the waiting ranks do.
  void place_where_it_stopped(const WaitNode& node, Diagnosis& diagnosis) const {
    if (node.kind != DumpOp::Kind::collective) {
      return;
    }
    const GroupCalls& group = job_.view.calls_of(node.group);
    const GroupMember* member = group.member(absent_.first());
    const std::int64_t last = member != nullptr && member->issued >= 0
                                  ? member->issued
                                  : group.member(node.ranks.front())->finished;
    if (group.counted || last < 0 || last + 1 >= node.position) {
      return;
    }
    diagnosis.finding.at->call.seq = last + 1;
    diagnosis.finding.at->call.label.clear();
    diagnosis.finding.at->call.site.clear();
    for (const GroupMember& other : group.members) {
      if (const DumpOp* op = other.ops == nullptr ? nullptr : other.at(last + 1)) {
        diagnosis.finding.at->call = name_call(job_, *other.ops, *op);
        return;
      }
    }
    diagnosis.evidence.push_back(
        fmt::format("the others ran ahead to #{} and their rings no longer hold the call that {} stopped at",
                    seq_of(group, node.position), ranks_phrase(absent_)));
  }

  void add_last_call(Rank rank, Diagnosis& diagnosis) const {
    const RankOps& ops = *job_.view.ops_of(rank);
    if (ops.ops.empty()) {
      diagnosis.evidence.push_back(
          fmt::format("the dump of rank {} has no calls: it owes nothing it has issued", rank));
      return;
    }
    const Call last = name_call(job_, ops, ops.ops.back());
    diagnosis.evidence.push_back(fmt::format("the last call of rank {} is {}{}; all its calls are finished",
                                             rank, call_phrase(last), origin_of(last)));
  }

  void add_unknown(Diagnosis& diagnosis) const {
    if (const RankSet& lost = job_.roots.lost; !lost.empty()) {
      diagnosis.evidence.push_back(fmt::format(
          "{} waited for too, but left no dump; what they did is unknown", with_verb(lost, "is", "are")));
      doubt_who_is_first(lost, diagnosis);
    }
  }

  // If the lost ranks died, a rank of Gloo that does nothing may wait for them, in calls that are not recorded.
  void doubt_who_is_first(const RankSet& lost, Diagnosis& diagnosis) const {
    const bool is_seen = std::ranges::any_of(job_.view.job.facts, [this](const LogFact& fact) {
      return fact.kind == LogFact::Kind::stack && absent_.contains(fact.ranks.first());
    });
    if (!is_seen && !ranks_without_messages(job_).empty()) {
      diagnosis.confidence = Confidence::low;
      diagnosis.alternatives.push_back(FindingKind::crashed_rank);
      diagnosis.would_settle.push_back(fmt::format("the log of {}: if {} died, {} may wait for {}",
                                                   ranks_phrase(lost), is_plural(lost) ? "they" : "it",
                                                   ranks_phrase(absent_), is_plural(lost) ? "them" : "it"));
    }
  }

  const DumpCase& job_;
  RankSet absent_;
};

}  // namespace

std::optional<Diagnosis> judge_absence(const DumpCase& job) {
  if (job.roots.idle.empty()) {
    return std::nullopt;
  }
  return AbsenceJudge(job, ranks_in(job.roots.idle)).judge_idle();
}

}  // namespace rollcall::check
