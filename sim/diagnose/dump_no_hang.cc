// No hang: stragglers, or no fault at all.

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

constexpr std::int64_t late_calls_min = 3;  // fewer may be chance
constexpr double late_share_min = 0.6;      // of all lateness in the rank's groups
constexpr double late_of_time_min = 0.05;   // of the time the dump covers
// The same where clocks have to decide: they differ by some milliseconds, so only a rank that costs most of each step
// counts.
constexpr std::int64_t late_calls_by_clock_min = 8;
constexpr double late_of_time_by_clock_min = 0.5;
constexpr double late_ms_by_clock_min = 50;  // per call
constexpr double own_wait_max = 0.25;        // of its lateness: a rank that waits more is a victim

// The time that one rank cost the others, in milliseconds.
struct Lateness {
  double late = 0;         // others waited for it
  double waited = 0;       // it waited for others
  double total = 0;        // lateness of all ranks in its groups
  std::int64_t calls = 0;  // calls in which it was late
};

// A call runs on the device from when a rank gets there until all have: the rank that came last has the
// shortest call. That needs no common clock.
class LatenessTable {
 public:
  // `by_clock`: uses the times at which calls were made instead, which does need a common clock.
  explicit LatenessTable(const DumpView& view, bool by_clock = false) : by_clock_(by_clock) {
    for (const GroupCalls& group : view.groups) {
      add(group);
    }
    for (const RankOps& ops : view.ranks) {
      add_messages(ops);
    }
  }

  const std::map<Rank, Lateness>& by_rank() const { return by_rank_; }

 private:
  // A rank that waits in messages for others is late for the next collective because of them, like the first stage of
  // a pipeline. The shortest message shows what a message costs.
  void add_messages(const RankOps& ops) {
    const auto place = by_rank_.find(ops.dump->rank);
    if (place == by_rank_.end()) {
      return;
    }
    float shortest = -1;
    double all = 0;
    double count = 0;
    for (const DumpOp& op : ops.ops) {
      const float duration = ops.record_of(op).duration_ms;
      if (op.kind != DumpOp::Kind::collective && op.finished && duration >= 0) {
        shortest = shortest < 0 ? duration : std::min(shortest, duration);
        all += duration;
        ++count;
      }
    }
    place->second.waited += count > 0 ? all - count * shortest : 0;
  }

  void add(const GroupCalls& group) {
    const auto first = std::ranges::find_if(
        group.members, [](const GroupMember& member) { return !member.collectives.empty(); });
    if (first == group.members.end() || group.members.size() < 2) {
      return;
    }
    for (std::size_t i = 0; i < first->collectives.size(); ++i) {
      add_call(group, first->op(i).position);
    }
  }

  void add_call(const GroupCalls& group, std::int64_t position) {
    durations_.clear();
    for (const GroupMember& member : group.members) {
      const DumpOp* op = member.at(position);
      if (op == nullptr || !op->finished) {
        return;
      }
      const DumpRecord& record = member.ops->record_of(*op);
      // The rank that made the call first ran it longest.
      const double duration = by_clock_ ? -static_cast<double>(record.created_ns) / 1e6 : record.duration_ms;
      if (by_clock_ ? record.created_ns == 0 : !(duration >= 0)) {
        return;
      }
      durations_.emplace_back(member.rank, duration);
    }
    const auto [least, most] =
        std::ranges::minmax_element(durations_, {}, [](const auto& entry) { return entry.second; });
    const double spread = most->second - least->second;
    const double limit = least->second + spread / 4;
    const auto late =
        std::ranges::count_if(durations_, [limit](const auto& entry) { return entry.second <= limit; });
    const bool some_are_late = 2 * static_cast<std::size_t>(late) <= durations_.size();
    for (const auto& [rank, duration] : durations_) {
      Lateness& lateness = by_rank_[rank];
      lateness.total += spread;
      if (!some_are_late || duration > limit) {
        lateness.waited += some_are_late ? duration - least->second : 0;
      } else {
        lateness.late += spread;
        ++lateness.calls;
      }
    }
  }

  bool by_clock_;
  std::map<Rank, Lateness> by_rank_;
  std::vector<std::pair<Rank, double>> durations_;
};

double covered_ms(const RankDump& dump) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (const DumpRecord& record : dump.records) {
    if (record.created_ns != 0) {
      first = first == 0 ? record.created_ns : std::min(first, record.created_ns);
      last = std::max(last, record.created_ns);
    }
  }
  return static_cast<double>(last - first) / 1e6;
}

std::optional<Diagnosis> find_straggler(const DumpCase& job, bool by_clock = false) {
  const LatenessTable table(job.view, by_clock);
  Diagnosis diagnosis;
  for (const auto& [rank, lateness] : table.by_rank()) {
    const double covered = covered_ms(*job.view.ops_of(rank)->dump);
    if (by_clock && lateness.late < late_ms_by_clock_min * static_cast<double>(lateness.calls)) {
      continue;
    }
    const bool is_straggler =
        lateness.calls >= (by_clock ? late_calls_by_clock_min : late_calls_min) &&
        lateness.late >= late_share_min * lateness.total &&
        lateness.late >= (by_clock ? late_of_time_by_clock_min : late_of_time_min) * covered &&
        lateness.waited <= own_wait_max * lateness.late;
    if (is_straggler) {
      diagnosis.finding.culprits.insert(rank);
      diagnosis.evidence.push_back(fmt::format("rank {} came last to {} calls, {:.1f} ms behind on average",
                                               rank, lateness.calls,
                                               lateness.late / static_cast<double>(lateness.calls)));
    }
  }
  if (diagnosis.finding.culprits.empty()) {
    return std::nullopt;
  }
  Finding& finding = diagnosis.finding;
  const std::string who = ranks_phrase(finding.culprits);
  finding.kind = FindingKind::straggler;
  finding.headline = fmt::format("nothing hangs, but the others regularly wait for {}", who);
  finding.cause = fmt::format("{} later than the others to the same calls again and again",
                              with_verb(finding.culprits, "comes", "come"));
  finding.advice =
      fmt::format("compare {} with a fast rank: clocks, temperature, data loading, its share of work", who);
  return diagnosis;
}

}  // namespace

std::optional<Diagnosis> judge_late(const DumpCase& job) {
  if (job.roots.idle.empty()) {
    return std::nullopt;
  }
  const auto explains = [&job](const std::optional<Diagnosis>& straggler) {
    return straggler && straggler->finding.culprits.meets(ranks_in(job.roots.idle));
  };
  if (std::optional<Diagnosis> straggler = find_straggler(job); explains(straggler)) {
    return straggler;
  }
  std::optional<Diagnosis> by_clock = find_straggler(job, true);
  if (!explains(by_clock)) {
    return std::nullopt;
  }
  by_clock->confidence = Confidence::low;
  by_clock->may_be_healthy = true;
  by_clock->alternatives = {FindingKind::stuck_host};
  by_clock->would_settle.push_back(second_dump);
  by_clock->would_settle.push_back(
      "the clocks of the ranks' hosts: one that is ahead looks like a rank that is late");
  return by_clock;
}

namespace {

// Ranks without a dump may wait for those with one.
void add_missing(const DumpCase& job, Diagnosis& diagnosis) {
  const RankSet missing = ranks_without_dump(job.view.job);
  if (!missing.empty()) {
    diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
    diagnosis.would_settle.push_back(fmt::format("the {} of {}: calls that are missed would be in {}",
                                                 is_plural(missing) ? "dumps" : "dump", ranks_phrase(missing),
                                                 is_plural(missing) ? "them" : "it"));
  }
}

// Describes a call that only some ranks have made and that is over for them, as far as is recorded, and the ranks that
// did not make it. Null if no group has one.
std::optional<std::string> uneven_end(const DumpCase& job) {
  for (const GroupCalls& group : job.view.groups) {
    for (const GroupMember& member : group.members) {
      const DumpOp* last = member.collectives.empty() ? nullptr : &member.last();
      if (last == nullptr || !last->finished || last->proven) {
        continue;
      }
      RankSet lacking;
      RankSet over;
      for (const GroupMember& other : group.members) {
        if (other.ops != nullptr && !other.collectives.empty()) {
          (other.issued < last->position ? lacking : over).insert(other.rank);
        }
      }
      if (!lacking.empty()) {
        return fmt::format("{} is over on {}, and {} not made it: if it failed there, look at {}",
                           call_phrase(name_call(job, *member.ops, *last)), ranks_phrase(over),
                           with_verb(lacking, "has", "have"), ranks_phrase(lacking));
      }
    }
  }
  return std::nullopt;
}

// Only a second moment shows that a job is at work. Without it, ranks that wait in calls that are not recorded
// look like ranks that have finished.
void doubt_standing(const DumpCase& job, Diagnosis& diagnosis) {
  if (job.progress == Progress::running && !job.view.job.earlier.empty()) {
    return;
  }
  diagnosis.confidence = Confidence::low;
  diagnosis.evidence.emplace_back(
      "nothing shows that the job made progress: ranks that wait for a group, a communicator, a key of the "
      "store or their own host would leave the same, and roots, reduce ops and splits are not recorded");
  diagnosis.would_settle.emplace_back(second_dump);
}

// Lowers the confidence because Gloo's recorder does not say whether a call that is over succeeded, and keeps no
// messages.
void doubt_gloo(const DumpCase& job, Diagnosis& diagnosis) {
  if (std::ranges::none_of(job.view.job.calls, &DumpCall::is_of_gloo)) {
    return;
  }
  diagnosis.confidence = std::max(diagnosis.confidence, Confidence::medium);
  if (std::optional<std::string> uneven = uneven_end(job)) {
    diagnosis.confidence = Confidence::low;
    diagnosis.evidence.push_back(*std::move(uneven));
    diagnosis.would_settle.push_back(
        "the logs of all ranks: Gloo's recorder retires a call that failed, too");
  }
  if (has_unrecorded_messages(job)) {
    diagnosis.confidence = Confidence::low;
    diagnosis.would_settle.push_back(
        "the host stacks of all ranks (py-spy dump): Gloo's recorder keeps no messages, so a rank that waits "
        "in one looks like one that does not");
  }
}

}  // namespace

Diagnosis judge_quiet(const DumpCase& job) {
  if (job.waits.nodes.empty()) {
    if (std::optional<Diagnosis> straggler = find_straggler(job)) {
      return *straggler;
    }
  }
  Diagnosis diagnosis = diagnosis_of(FindingKind::no_fault, Confidence::high, {});
  Finding& finding = diagnosis.finding;
  if (job.waits.nodes.empty()) {
    finding.headline = "nothing here shows a fault: every call is over, or was seen to end by a peer";
    if (std::ranges::any_of(job.view.job.ranks, &RankDump::is_window)) {
      finding.headline = "nothing is wrong in the calls that were recorded";
      diagnosis.would_settle.push_back(
          "Flight Recorder dumps: a profiler's trace holds finished calls only, so no hang shows in it");
    }
    if (std::ranges::all_of(job.view.job.ranks, [](const RankDump& dump) { return dump.records.empty(); })) {
      diagnosis.confidence = Confidence::low;
      diagnosis.may_be_healthy = true;
      finding.headline = "the recordings hold no calls between ranks, so they show nothing";
    }
    doubt_standing(job, diagnosis);
    add_missing(job, diagnosis);
    doubt_gloo(job, diagnosis);
    if (stands_still(job.progress)) {
      finding.headline = "the job stands still, and the calls that were recorded do not show why";
      diagnosis.may_be_healthy = true;
      diagnosis.would_settle.emplace_back("host stacks of all ranks while the job hangs (py-spy dump)");
    }
    return diagnosis;
  }
  diagnosis.confidence = Confidence::medium;
  finding.headline = "nothing is wrong as far as the dumps show: the ranks were still making calls";
  // A call that all have made ends soon in a job at work. One that lacks a rank may lack it for good.
  const auto node =
      std::ranges::find_if(job.waits.nodes, [](const WaitNode& each) { return !each.blockers.empty(); });
  if (job.progress != Progress::running && node != job.waits.nodes.end()) {
    finding.headline =
        fmt::format("{} in {}, and nothing shows whether for long",
                    with_verb(ranks_of(*node), "waits", "wait"), call_phrase(name_node(job, *node)));
    diagnosis.may_be_healthy = true;
  }
  std::map<std::string, RankSet> owing;  // by call
  for (const auto& [rank, node] : job.roots.idle) {
    owing[call_phrase(name_node(job, job.waits.nodes[node]))].insert(RankSet{rank});
  }
  for (const auto& [call, ranks] : owing) {
    diagnosis.evidence.push_back(fmt::format("{} yet to make {}", with_verb(ranks, "has", "have"), call));
  }
  if (moved_between_dumps(job.view)) {
    diagnosis.evidence.push_back("some dumps are older than others: the job moved while they were written");
  }
  diagnosis.would_settle.push_back(second_dump);
  if (job.view.job.earlier.empty() || ranks_with_calls_between(job.view.job).empty()) {
    diagnosis.confidence = Confidence::low;
  }
  doubt_gloo(job, diagnosis);
  return diagnosis;
}

}  // namespace rollcall::check
