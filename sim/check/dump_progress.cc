// Does the job stand still? A dump on demand catches a healthy job in the middle of a step, and ranks in
// the middle of a step wait for each other too. Times tell the two apart, each on its rank's own clock.

#include <algorithm>
#include <set>
#include <vector>

#include "sim/check/dump_case.h"

namespace rollcall::check {

namespace {

struct Silence {
  std::int64_t last_call = 0;      // when the rank issued its last call
  std::int64_t last_event = 0;     // the latest time in its dump
  std::int64_t longest_pause = 0;  // between two calls
};

Silence silence_of(const RankDump& dump) {
  Silence silence;
  for (const DumpRecord& record : dump.records) {
    if (silence.last_call != 0) {
      silence.longest_pause = std::max(silence.longest_pause, record.created_ns - silence.last_call);
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

}  // namespace

Progress progress_of(const DumpView& view, const Waits& waits, const Roots& roots) {
  std::set<Rank> idle;
  for (const auto& [rank, node] : roots.idle) {
    idle.insert(rank);
  }
  std::vector<Silence> silences;
  std::int64_t longest_pause = 0;  // on any rank: one that waits early in the job has seen no pause yet
  for (const RankOps& ops : view.ranks) {
    silences.push_back(silence_of(*ops.dump));
    longest_pause = std::max(longest_pause, silences.back().longest_pause);
  }
  bool moved = false;
  for (std::size_t i = 0; i < view.ranks.size(); ++i) {
    const RankOps& ops = view.ranks[i];
    const bool waits_itself = waits.node_of.contains(ops.dump->rank);
    if (!waits_itself && !idle.contains(ops.dump->rank)) {
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
    if (longest_pause > 0 && quiet > longest_pause) {
      return Progress::standstill;
    }
    moved |= waits_itself && quiet > 0;
  }
  return moved ? Progress::running : Progress::unknown;
}

}  // namespace rollcall::check
