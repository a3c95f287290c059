// The engine's part about ranks that die when the scenario says. A rank dies at a time, whatever it does then:
// computing stops, a wait ends, calls that others have not joined are taken back. What everybody had entered
// before completes.

#include <algorithm>
#include <functional>
#include <limits>

#include "sim/base/error.h"
#include "sim/engine/engine.h"

namespace rollcall::sim {
namespace {

using check::MessageId;
using check::RankStatus;
using check::Slot;

constexpr const char* deadly = "SIGKILL";

}  // namespace

void Engine::plan_crashes() {
  if (options_.crashes.empty()) {
    return;
  }
  if (options_.decisions != nullptr) {
    options_.decisions->looked_at_clock();
  }
  dies_at_.assign(static_cast<std::size_t>(options_.world_size), never);
  for (const Crash& crash : options_.crashes) {
    for (const Rank rank : crash.ranks.to_vector()) {
      Time& at = dies_at_[static_cast<std::size_t>(rank)];
      at = std::min(at, crash.at);
    }
  }
  for (Rank rank = 0; rank < options_.world_size; ++rank) {
    if (dies_at_[static_cast<std::size_t>(rank)] != never) {
      next_dead_.emplace_back(dies_at_[static_cast<std::size_t>(rank)], rank);
    }
  }
  std::ranges::sort(next_dead_, std::greater());
}

// Nothing moves before `next`. Ranks that are to die until then and wait do so now; true when there was one.
// Those that compute notice by themselves.
bool Engine::crash_before(Time next) {
  const Time until = std::min(next, options_.limits.simulated_time);
  bool anybody = false;
  while (!next_dead_.empty() && next_dead_.back().first <= until &&
         (!anybody || next_dead_.back().first == now_)) {
    const auto [at, rank] = next_dead_.back();
    next_dead_.pop_back();
    if (status_[static_cast<std::size_t>(rank)].state != RankStatus::State::waiting) {
      continue;
    }
    anybody = true;
    now_ = std::max(now_, at);
    if (queues_launches_) {
      resolve_host_wait(rank);
    }
    wake_interrupted(rank, {true, {}, deadly});
  }
  return anybody;
}

void Engine::die_at_last(Rank rank) const {
  if (!aborting_ && now_ >= dies_at_[static_cast<std::size_t>(rank)]) {
    throw ProcessKilled{deadly};
  }
}

// When a rank that begins to compute now is through with it, or dead.
Time Engine::end_of_compute(Rank rank, Duration duration) const {
  const Time end = now_ + duration;
  return dies_at_.empty() ? end : std::min(end, dies_at_[static_cast<std::size_t>(rank)]);
}

// Others that come now wait for the dead rank.
void Engine::withdraw_calls(Rank rank) {
  for (std::size_t id = 0; id < members_.size(); ++id) {
    const Rank member = members_[id].rank_of(rank);
    if (member < 0) {
      continue;
    }
    withdraw_from(*matchers_[id], member, groups_[id], recorder_.has_value());
    for (const std::unique_ptr<check::GroupMatcher>& channel : channels_[id]) {
      if (channel != nullptr) {
        withdraw_from(*channel, member, groups_[id], false);  // calls about groups are in no timeline
      }
    }
  }
  withdraw_messages(rank);
}

void Engine::withdraw_from(check::GroupMatcher& matcher, Rank member, const check::GroupEvidence& group,
                           bool is_recorded) {
  for (std::int64_t seq = matcher.first_live(); seq < matcher.end(); ++seq) {
    Slot& slot = *matcher.find(seq);
    // Who is through has given the others what they need of it.
    if (slot.phase != Slot::Phase::collecting || !slot.has(member) || slot.is_through(member)) {
      continue;
    }
    if (is_recorded) {
      recorder_->abandoned(group, slot, member);
    }
    notes_->incidents.inspect_withdrawn(group.members->id, slot, member);
    matcher.withdraw(slot, member);
  }
}

void Engine::withdraw_messages(Rank rank) {
  for (std::size_t id = 0; id < members_.size(); ++id) {
    const Rank member = members_[id].rank_of(rank);
    if (member < 0 || messengers_[id] == nullptr) {
      continue;
    }
    for (const MessageId message : messengers_[id]->pending()) {
      const check::Message& posted = messengers_[id]->at(message);
      if (posted.op.rank != member || posted.phase != check::Message::Phase::pending) {
        continue;
      }
      if (recorder_) {
        recorder_->message(groups_[id], posted, Span::open);
      }
      messengers_[id]->withdraw(message);
    }
  }
}

}  // namespace rollcall::sim
