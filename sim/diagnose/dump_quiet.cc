// No hang: stragglers, or no fault at all.

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

constexpr std::int64_t late_calls_min = 3;  // fewer are chance
constexpr double late_share_min = 0.6;      // of all lateness in the rank's groups
constexpr double late_of_time_min = 0.05;   // of the time the dump covers
constexpr double own_wait_max = 0.25;       // of its lateness: who waits as much is a victim

// What one rank cost the others, in milliseconds.
struct Lateness {
  double late = 0;         // others waited for it
  double waited = 0;       // it waited for others
  double total = 0;        // lateness of anybody, in its groups
  std::int64_t calls = 0;  // it was late in
};

// A call runs on the device from when a rank gets there until all have: whoever came last has the
// shortest. That needs no common clock.
class LatenessTable {
 public:
  explicit LatenessTable(const DumpView& view) {
    for (const GroupCalls& group : view.groups) {
      add(group);
    }
    for (const RankOps& ops : view.ranks) {
      add_messages(ops);
    }
  }

  const std::map<Rank, Lateness>& by_rank() const { return by_rank_; }

 private:
  // Who waits in messages for others comes late to the next collective for their sake, as the first stage of a
  // pipeline does. The shortest message says what one costs.
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
    const GroupMember* first = nullptr;
    for (const GroupMember& member : group.members) {
      if (!member.collectives.empty()) {
        first = first == nullptr ? &member : first;
      }
    }
    if (first == nullptr || group.members.size() < 2) {
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
      const float duration = op == nullptr ? -1 : member.ops->record_of(*op).duration_ms;
      if (op == nullptr || !op->finished || !(duration >= 0)) {
        return;
      }
      durations_.emplace_back(member.rank, duration);
    }
    const auto by_duration = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto [least, most] = std::minmax_element(durations_.begin(), durations_.end(), by_duration);
    const double spread = most->second - least->second;
    const double limit = least->second + spread / 4;
    const auto late = std::count_if(durations_.begin(), durations_.end(),
                                    [limit](const auto& entry) { return entry.second <= limit; });
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

  std::map<Rank, Lateness> by_rank_;
  std::vector<std::pair<Rank, float>> durations_;
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

std::optional<Diagnosis> find_straggler(const DumpCase& job) {
  const LatenessTable table(job.view);
  Diagnosis diagnosis;
  for (const auto& [rank, lateness] : table.by_rank()) {
    const double covered = covered_ms(*job.view.ops_of(rank)->dump);
    const bool is_straggler =
        lateness.calls >= late_calls_min && lateness.late >= late_share_min * lateness.total &&
        lateness.late >= late_of_time_min * covered && lateness.waited <= own_wait_max * lateness.late;
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
  std::optional<Diagnosis> straggler = find_straggler(job);
  const bool is_known =
      straggler && std::all_of(job.roots.idle.begin(), job.roots.idle.end(), [&](const auto& idle) {
        return straggler->finding.culprits.contains(idle.first);
      });
  return is_known ? straggler : std::nullopt;
}

namespace {

// Who left no dump may wait for those who did.
void add_missing(const DumpCase& job, Diagnosis& diagnosis) {
  RankSet missing;
  for (const DumpGroup& group : job.view.job.groups) {
    missing.insert(RankSet::of(group.members));
  }
  for (const RankOps& ops : job.view.ranks) {
    missing = difference(missing, {ops.dump->rank});
  }
  if (!missing.empty()) {
    diagnosis.confidence = std::max(diagnosis.confidence, Diagnosis::Confidence::medium);
    diagnosis.would_settle.push_back(fmt::format("the {} of {}: calls that are missed would be in {}",
                                                 is_plural(missing) ? "dumps" : "dump", ranks_phrase(missing),
                                                 is_plural(missing) ? "them" : "it"));
  }
}

}  // namespace

Diagnosis judge_quiet(const DumpCase& job) {
  if (job.waits.nodes.empty()) {
    if (std::optional<Diagnosis> straggler = find_straggler(job)) {
      return *straggler;
    }
  }
  Diagnosis diagnosis;
  Finding& finding = diagnosis.finding;
  finding.kind = FindingKind::no_fault;
  if (job.waits.nodes.empty()) {
    finding.headline = "nothing is wrong: every call is finished, or was seen to finish by a peer";
    if (std::any_of(job.view.ranks.begin(), job.view.ranks.end(),
                    [](const RankOps& ops) { return ops.dump->is_window; })) {
      finding.headline = "nothing is wrong in the calls that were recorded";
      diagnosis.would_settle.push_back(
          "Flight Recorder dumps: a profiler's trace holds finished calls only, so no hang shows in it");
    }
    if (std::all_of(job.view.ranks.begin(), job.view.ranks.end(),
                    [](const RankOps& ops) { return ops.dump->records.empty() && !ops.dump->has_states; })) {
      diagnosis.confidence = Diagnosis::Confidence::low;
      finding.headline = "the recordings hold no calls between ranks, so they show nothing";
    }
    add_missing(job, diagnosis);
    return diagnosis;
  }
  diagnosis.confidence = Diagnosis::Confidence::medium;
  finding.headline = "nothing is wrong as far as the dumps show: the ranks were still making calls";
  for (const auto& [rank, node] : job.roots.idle) {
    diagnosis.evidence.push_back(
        fmt::format("rank {} has yet to make {}", rank, call_phrase(name_node(job, job.waits.nodes[node]))));
  }
  diagnosis.would_settle.push_back(
      "a second dump some time later: if the same calls are unfinished then, the job hangs");
  return diagnosis;
}

}  // namespace rollcall::check
