// Decides whether the job stands still. A dump on demand catches a healthy job in the middle of a step, and ranks in
// the middle of a step wait for each other too. Times distinguish the two, each on its rank's own clock.

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/log_judge.h"

namespace rollcall::check {

namespace {

struct Silence {
  std::int64_t last_call = 0;   // when the rank issued its last call
  std::int64_t last_event = 0;  // the latest time in its dump
  std::int64_t pause_max = 0;   // longest time between two calls
};

Silence silence_of(const RankDump& dump) {
  Silence silence;
  for (const DumpRecord& record : dump.records) {
    if (silence.last_call != 0) {
      silence.pause_max = std::max(silence.pause_max, record.created_ns - silence.last_call);
    }
    silence.last_call = std::max(silence.last_call, record.created_ns);
    silence.last_event =
        std::max({silence.last_event, record.created_ns, record.started_ns, record.completed_ns});
  }
  return silence;
}

// `last_event`: of the job. A rank that hangs records nothing, but others may.
bool outlived_timeout(const RankOps& ops, const DumpOp& op, std::int64_t last_event) {
  const DumpRecord& record = ops.record_of(op);
  const std::int64_t timeout_ns = std::int64_t{record.timeout_ms} * 1'000'000;
  return record.retired ||  // the watchdog has given up on it
         (timeout_ns > 0 && record.created_ns > 0 && last_event - record.created_ns >= timeout_ns);
}

enum class Change { none, unclear, calls };

// Gloo's recorder retires a call that failed like one that succeeded: if a rank made no further call, that is unclear.
Change change_between(const RankDump& before, const RankDump& now) {
  const auto is_one_call = [](const DumpRecord& a, const DumpRecord& b) {
    return a.created_ns == b.created_ns;
  };
  if (!std::ranges::equal(before.records, now.records, is_one_call)) {
    return Change::calls;
  }
  Change change = Change::none;
  for (std::size_t i = 0; i < now.records.size(); ++i) {
    if (before.records[i].state == now.records[i].state) {
      continue;
    }
    if (now.records[i].state != DumpRecord::State::ended) {
      return Change::calls;
    }
    change = Change::unclear;
  }
  return change;
}

// True if a rank is waited for, and neither it nor those that wait for it have moved: a part of the job may hang.
bool has_still_part(const Waits& waits, const Roots& roots, const RankSet& still) {
  return std::ranges::any_of(waits.nodes, [&](const WaitNode& node) {
    return still.contains(ranks_of(node)) && std::ranges::any_of(roots.idle, [&](const auto& idle) {
             return still.contains(idle.first) && blockers_of(node).contains(idle.first);
           });
  });
}

// The progress that a second dump of some ranks, from another moment, shows. Null without one.
std::optional<Progress> between_moments(const JobDump& job, const Waits& waits, const Roots& roots) {
  RankSet still;
  RankSet moved;
  for (const RankDump& earlier : job.earlier) {
    const RankDump* now = find_rank(job.ranks, earlier.rank, &RankDump::rank);
    const Change change = now == nullptr ? Change::unclear : change_between(earlier, *now);
    if (change != Change::unclear) {
      (change == Change::none ? still : moved).insert(RankSet{earlier.rank});
    }
  }
  if (!moved.empty()) {
    return has_still_part(waits, roots, still) ? Progress::unclear : Progress::running;
  }
  return still.empty() ? std::nullopt : std::optional(Progress::still);
}

bool has_finished_calls(const DumpView& view) {
  return std::ranges::any_of(
      view.ranks, [](const RankOps& ops) { return std::ranges::any_of(ops.ops, &DumpOp::finished); });
}

// A host thread notices finished calls now and then. In a job at rest all are noticed; in a job that moves, most
// ranks have some yet to notice. If it is only a few ranks, their devices may have failed.
bool notices_late(const DumpView& view, const Waits& waits) {
  return 2 * waits.unobserved.size() > view.ranks.size();
}

}  // namespace

RankSet ranks_with_calls_between(const JobDump& job) {
  RankSet ranks;
  for (const RankDump& earlier : job.earlier) {
    const RankDump* now = find_rank(job.ranks, earlier.rank, &RankDump::rank);
    if (now != nullptr && change_between(earlier, *now) == Change::calls) {
      ranks.insert(earlier.rank);
    }
  }
  return ranks;
}

Progress progress_of(const DumpView& view, const Waits& waits, const Roots& roots) {
  if (!std::ranges::all_of(view.job.ranks, &RankDump::has_states)) {  // they are replayed
    return Progress::assumed;
  }
  if (view.job.is_known_to_hang || log_shows_timeout(view.job.facts)) {
    return Progress::standstill;
  }
  if (const std::optional<Progress> seen = between_moments(view.job, waits, roots)) {
    return *seen;
  }
  std::vector<Silence> silences;
  std::int64_t pause_max = 0;  // on any rank: one that waits early in the job has seen no pause yet
  std::int64_t last_event = 0;
  for (const RankDump& dump : view.job.ranks) {
    silences.push_back(silence_of(dump));
    pause_max = std::max(pause_max, silences.back().pause_max);
    last_event = std::max(last_event, silences.back().last_event);
  }
  bool is_silent = false;
  for (std::size_t i = 0; i < view.ranks.size(); ++i) {
    const RankOps& ops = view.ranks[i];
    if (!waits.node_of.contains(ops.rank()) && !roots.idle.contains(ops.rank())) {
      continue;
    }
    for (const DumpOp& op : ops.ops) {
      if (!op.finished && op.kind != DumpOp::Kind::batch && outlived_timeout(ops, op, last_event)) {
        return Progress::standstill;
      }
    }
    const std::int64_t quiet = silences[i].last_event - silences[i].last_call;
    is_silent = is_silent || (pause_max > 0 && quiet > pause_max);
  }
  if (moved_between_dumps(view) || (!is_silent && notices_late(view, waits))) {
    return Progress::running;
  }
  if (is_silent) {
    return Progress::silent;
  }
  // Complete dumps without a finished call are of a job that has just begun.
  const bool lacks_finished = std::ranges::any_of(
      view.job.ranks, [](const RankDump& dump) { return !dump.from_start && !dump.records.empty(); });
  return has_finished_calls(view) || !lacks_finished ? Progress::unclear : Progress::assumed;
}

bool ended_otherwise(const DumpCase& job) {
  return std::ranges::any_of(job.waits.nodes, [&job](const WaitNode& node) {
    return node.kind == DumpOp::Kind::collective &&
           std::ranges::any_of(job.view.calls_of(node.group).members, [&node](const GroupMember& member) {
             const DumpOp* op = member.at(node.position);
             return op != nullptr && op->finished && !op->proven;
           });
  });
}

namespace {

constexpr std::size_t compared_calls_max = 64;
constexpr std::size_t compared_calls_min = 3;

// The part of a usual step in which `waiting` members or more, but not all, had made the next call of the group. Clocks
// that differ by a constant are corrected first.
double share_of_waiting_in(const GroupCalls& group, std::size_t waiting) {
  std::vector<const GroupMember*> members;
  for (const GroupMember& member : group.members) {
    if (member.ops != nullptr) {
      members.push_back(&member);
    }
  }
  if (members.size() <= waiting || members.front()->collectives.empty()) {
    return 0;
  }
  std::vector<std::vector<std::int64_t>> times(members.size());  // by member: of calls that all have finished
  const GroupMember& first = *members.front();
  for (std::size_t i = first.collectives.size(); i-- > 0 && times.front().size() < compared_calls_max;) {
    std::vector<std::int64_t> row;
    for (const GroupMember* member : members) {
      const DumpOp* op = member->at(first.op(i).position);
      const std::int64_t created =
          op == nullptr || !op->finished ? 0 : member->ops->record_of(*op).created_ns;
      if (created == 0) {
        break;
      }
      row.push_back(created);
    }
    for (std::size_t m = 0; m < members.size() && row.size() == members.size(); ++m) {
      times[m].push_back(row[m]);
    }
  }
  const std::size_t count = times.front().size();
  if (count < compared_calls_min) {
    return 0;
  }
  for (std::size_t m = 1; m < times.size(); ++m) {
    std::vector<std::int64_t> apart;
    for (std::size_t i = 0; i < count; ++i) {
      apart.push_back(times[m][i] - times[0][i]);
    }
    const std::int64_t offset = median(std::move(apart));
    for (std::int64_t& time : times[m]) {
      time -= offset;
    }
  }
  std::vector<std::int64_t> waits;
  std::vector<std::int64_t> arrivals(times.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::ranges::transform(times, arrivals.begin(), [i](const auto& of_member) { return of_member[i]; });
    std::ranges::sort(arrivals);
    waits.push_back(arrivals.back() - arrivals[waiting - 1]);
  }
  const std::int64_t covered = times[0].front() - times[0].back();
  const double step = static_cast<double>(covered) / static_cast<double>(count - 1);
  return step <= 0 ? 0 : std::min(1.0, static_cast<double>(median(std::move(waits))) / step);
}

// Ranks that may wait in messages, which Gloo's recorder skips: no rank is known to wait for them.
RankSet in_messages(const DumpCase& job) {
  const RankSet unknown = difference(ranks_without_messages(job), ranks_in(job.waits.node_of));
  return difference(unknown, ranks_in(job.roots.idle));
}

}  // namespace

double share_of_waiting(const DumpCase& job) {
  double most = 0;
  for (const auto& [rank, index] : job.roots.idle) {
    const WaitNode& node = job.waits.nodes[index];
    if (node.kind == DumpOp::Kind::collective) {
      most = std::max(most, share_of_waiting_in(job.view.calls_of(node.group), node.ranks.size()));
    }
  }
  return most;
}

bool may_hang(const DumpCase& job) {
  if (job.progress == Progress::running) {
    return false;
  }
  if (job.progress != Progress::unclear) {
    return true;
  }
  const std::size_t waiting = job.waits.node_of.size();
  if (share_of_waiting(job) > 0.5) {
    return false;  // a healthy step looked the same most of the time
  }
  if (!job.roots.idle.empty() || !job.roots.lost.empty()) {
    return 2 * (waiting + in_messages(job).size()) >= job.view.ranks.size() ||
           (!job.roots.lost.empty() && ended_otherwise(job));
  }
  // All have made the call. A job at work has such calls in flight, too, unless the ranks disagree on the root.
  return waiting == job.view.ranks.size() && job.roots.cycles.empty() && job.roots.complete.size() == 1 &&
         has_root(recorded_call(job, job.waits.nodes[job.roots.complete.front()]).op);
}

}  // namespace rollcall::check
