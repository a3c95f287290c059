// Does the job stand still? A dump on demand catches a healthy job in the middle of a step, and ranks in
// the middle of a step wait for each other too. Times tell the two apart, each on its rank's own clock.

#include <algorithm>
#include <set>
#include <vector>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/log_judge.h"

namespace rollcall::check {

namespace {

struct Silence {
  std::int64_t last_call = 0;   // when the rank issued its last call
  std::int64_t last_event = 0;  // the latest time in its dump
  std::int64_t pause_max = 0;   // between two calls
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

bool outlived_timeout(const RankOps& ops, const DumpOp& op, std::int64_t last_event) {
  const DumpRecord& record = ops.record_of(op);
  const std::int64_t timeout_ns = std::int64_t{record.timeout_ms} * 1'000'000;
  return record.retired ||  // the watchdog has given up on it
         (timeout_ns > 0 && record.created_ns > 0 && last_event - record.created_ns >= timeout_ns);
}

bool has_finished_calls(const DumpView& view) {
  return std::any_of(view.ranks.begin(), view.ranks.end(), [](const RankOps& ops) {
    return std::any_of(ops.ops.begin(), ops.ops.end(), [](const DumpOp& op) { return op.finished; });
  });
}

// A host thread notices finished calls now and then. A job at rest has noticed all; in one that moves, most
// ranks have some yet to notice. A few ranks alone may have failed devices.
bool notices_late(const DumpView& view, const Waits& waits) {
  return 2 * waits.unobserved.size() > view.ranks.size();
}

}  // namespace

Progress progress_of(const DumpView& view, const Waits& waits, const Roots& roots) {
  const bool is_replayed = std::any_of(view.ranks.begin(), view.ranks.end(),
                                       [](const RankOps& ops) { return !ops.dump->has_states; });
  if (is_replayed) {
    return Progress::assumed;
  }
  if (log_shows_timeout(view.job.facts)) {
    return Progress::standstill;
  }
  std::set<Rank> idle;
  for (const auto& [rank, node] : roots.idle) {
    idle.insert(rank);
  }
  std::vector<Silence> silences;
  std::int64_t pause_max = 0;  // on any rank: one that waits early in the job has seen no pause yet
  for (const RankOps& ops : view.ranks) {
    silences.push_back(silence_of(*ops.dump));
    pause_max = std::max(pause_max, silences.back().pause_max);
  }
  for (std::size_t i = 0; i < view.ranks.size(); ++i) {
    const RankOps& ops = view.ranks[i];
    if (!waits.node_of.contains(ops.dump->rank) && !idle.contains(ops.dump->rank)) {
      continue;
    }
    for (const DumpOp& op : ops.ops) {
      if (!op.finished && op.kind != DumpOp::Kind::batch &&
          outlived_timeout(ops, op, silences[i].last_event)) {
        return Progress::standstill;
      }
    }
    // Silent for longer than between any two calls before: the program has stopped making calls.
    const std::int64_t quiet = silences[i].last_event - silences[i].last_call;
    if (pause_max > 0 && quiet > pause_max) {
      return Progress::standstill;
    }
  }
  if (notices_late(view, waits)) {
    return Progress::running;
  }
  return has_finished_calls(view) ? Progress::unclear : Progress::assumed;
}

bool may_hang(const DumpCase& job) {
  if (job.progress != Progress::unclear) {
    return job.progress != Progress::running;
  }
  const std::size_t waiting = job.waits.node_of.size();
  if (!job.roots.idle.empty()) {
    return 2 * waiting >= job.view.ranks.size();
  }
  // One cause stops all; calls in flight at several places at once are a job at work.
  return waiting == job.view.ranks.size() && job.roots.complete.size() + job.roots.cycles.size() <= 1;
}

}  // namespace rollcall::check
