// The engine's part about ranks that die when the scenario says so. A rank dies at its time, whatever it is doing:
// computing stops, a wait ends, and calls that not all members have made are withdrawn. Calls that all had made
// before complete.

#include <algorithm>

#include "sim/base/error.h"
#include "sim/engine/engine.h"

namespace rollcall::sim {
namespace {

using check::Slot;

constexpr const char* deadly = "SIGKILL";

}  // namespace

// Nothing moves before `next`. Waiting ranks that are to die by then die now; true if there was one.
// Ranks that compute notice on their own.
bool Engine::crash_before(Time next) {
  const Time until = std::min(next, run_.options.limits.simulated_time);
  bool anybody = false;
  while (deaths_.next() <= until && deaths_.next() != never && (!anybody || deaths_.next() == run_.now)) {
    const Time at = deaths_.next();
    const Rank rank = deaths_.pop();
    if (!run_.waits(rank)) {
      continue;
    }
    anybody = true;
    run_.now = std::max(run_.now, at);
    if (run_.queues_calls) {
      resolve_host_wait(rank);
    }
    wake_interrupted(rank, {true, {}, deadly});
  }
  return anybody;
}

void Engine::die_at_last(Rank rank) const {
  if (!aborting_ && run_.now >= deaths_.of(rank)) {
    throw ProcessKilled{deadly};
  }
}

// Only once all ranks rest: otherwise the order in which ranks run would decide which calls of the same time still met
// those of the dead rank.
void Engine::withdraw_calls_of_dead() {
  std::ranges::sort(died_);
  for (const Rank rank : died_) {
    if (run_.queues_calls) {
      devices_[static_cast<std::size_t>(rank)].drop_unstarted();
    }
    withdraw_calls(rank);
  }
  died_.clear();
}

// Ranks that arrive from now on wait for the dead rank.
void Engine::withdraw_calls(Rank rank) {
  for (std::size_t id = 0; id < run_.members.size(); ++id) {
    const Rank member = run_.members[id].rank_of(rank);
    if (member < 0) {
      continue;
    }
    withdraw_from(*run_.matchers[id], member, run_.groups[id], run_.recorder.has_value());
    group_calls_.withdraw(
        static_cast<GroupId>(id), member, [this](auto& matcher, Rank who, const auto& group) {
          withdraw_from(matcher, who, group, false);  // timelines do not have calls about groups as slots
        });
  }
  messages_.withdraw(rank);
}

void Engine::withdraw_from(check::GroupMatcher& matcher, Rank member, const check::GroupEvidence& group,
                           bool is_recorded) {
  for (std::int64_t seq = matcher.first_live(); seq < matcher.end(); ++seq) {
    Slot& slot = *matcher.find(seq);
    // A member that got through has already given the others what they need.
    if (slot.phase != Slot::Phase::collecting || !slot.has(member) || slot.is_through(member)) {
      continue;
    }
    if (is_recorded) {
      run_.recorder->got_through(group, slot, member, Span::open);
    }
    run_.notes->incidents.inspect_withdrawn(group.members->id, slot, member);
    matcher.withdraw(slot, member);
  }
}

}  // namespace rollcall::sim
