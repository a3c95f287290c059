// The engine's part about limits of time. A rank gives up when its call, its group or the run says how long it
// may wait. Only limits that a call names itself can end a wait before it is proven that nothing else can: a
// program that gives one is prepared for its end.

#include <algorithm>
#include <utility>

#include "sim/base/expects.h"
#include "sim/c10d/monitored_barrier.h"
#include "sim/engine/engine.h"
#include "sim/match/naming.h"

namespace rollcall::sim {
namespace {

using check::Channel;
using check::RankStatus;

}  // namespace

// Says of the running rank's next wait what its call says.
void Engine::limit_next_wait(const std::optional<Duration>& limit, bool names_all) {
  if (limit && *limit > 0) {
    deadlines_.resize(static_cast<std::size_t>(options_.world_size));
  }
  next_wait_ = {.limit = limit.value_or(0), .own = limit.value_or(0) > 0, .names_all = names_all};
}

// For the running rank, which is about to park.
void Engine::set_deadline(Rank rank) {
  if (queues_launches_) {
    resolve_host_wait(rank);
  }
  const RankStatus& status = status_[static_cast<std::size_t>(rank)];
  Deadline deadline = std::exchange(next_wait_, {});
  if (!deadline.own) {
    const Duration group_max = status.channel == Channel::store ? 0 : group_timeouts_[status.group];
    deadline.limit = group_max > 0 ? group_max : options_.timeout;
  }
  deadline.since = now_;
  if (options_.decisions != nullptr && deadline.limit > 0) {
    options_.decisions->looked_at_clock();
  }
  deadlines_[static_cast<std::size_t>(rank)] = deadline;
}

// When the first of the waiting ranks gives up. `own`: of those whose call says when.
std::optional<Time> Engine::next_deadline(bool own) const {
  std::optional<Time> first;
  for (std::size_t rank = 0; rank < deadlines_.size(); ++rank) {
    const Deadline& deadline = deadlines_[rank];
    if (status_[rank].state == RankStatus::State::waiting && deadline.limit > 0 && (deadline.own || !own)) {
      const Time mine = deadline.since + deadline.limit;
      first = first ? std::min(*first, mine) : mine;
    }
  }
  return first;
}

// The ranks whose deadline comes first give up. True when there was one.
bool Engine::expire_timeouts() {
  if (let_some_through()) {
    return true;
  }
  resolve_host_waits();
  const std::optional<Time> first = next_deadline(false);
  if (!first) {
    return false;
  }
  now_ = std::max(now_, *first);
  if (first != next_deadline(true)) {  // otherwise the program has said itself how long to wait
    notify_settled();
  }
  std::vector<std::pair<Rank, Interruption>> expired;
  for (std::size_t rank = 0; rank < status_.size(); ++rank) {
    const Deadline& deadline = deadlines_[rank];
    if (status_[rank].state == RankStatus::State::waiting && deadline.limit > 0 &&
        deadline.since + deadline.limit <= now_) {
      note_timeout(static_cast<Rank>(rank));
      give_up(static_cast<Rank>(rank), expired);
    }
  }
  take_off(expired);
  for (auto& [rank, interruption] : expired) {
    if (status_[static_cast<std::size_t>(rank)].state == RankStatus::State::waiting) {
      wake_interrupted(rank, std::move(interruption));
    }
  }
  return true;
}

// Takes ranks off the lists of waiters of their slots, all at once: one by one, a million take a million times as
// long.
void Engine::take_off(const std::vector<std::pair<Rank, Interruption>>& leaving) {
  std::vector<bool> leaves(status_.size(), false);
  for (const auto& [rank, interruption] : leaving) {
    leaves[static_cast<std::size_t>(rank)] = true;
  }
  const check::Slot* done = nullptr;
  for (const auto& [rank, interruption] : leaving) {
    const RankStatus& status = status_[static_cast<std::size_t>(rank)];
    const bool in_slot = status.channel == Channel::collectives && !status.in_message() && !queues_launches_;
    check::Slot* slot = in_slot ? matchers_[status.group]->find(status.seq) : nullptr;
    if (slot != nullptr && slot != done) {
      std::erase_if(slot->waiters, [&](Rank waiter) { return leaves[static_cast<std::size_t>(waiter)]; });
      done = slot;
    }
  }
}

void Engine::give_up(Rank rank, std::vector<std::pair<Rank, Interruption>>& expired) {
  const RankStatus& status = status_[static_cast<std::size_t>(rank)];
  expired.emplace_back(rank, timeout_of(rank));
  if (status.channel != Channel::collectives) {
    return;
  }
  if (deadlines_[static_cast<std::size_t>(rank)].of_wait && !status.in_message() && !queues_launches_) {
    return;
  }
  broken_[status.group] = any_broken_ = true;
  check::Slot* slot = status.in_message() ? nullptr : matchers_[status.group]->find(status.seq);
  if (slot == nullptr || slot->reference.kind != OpKind::monitored_barrier || status.group_rank != 0) {
    return;
  }
  for (const Rank waiter : slot->waiters) {  // rank 0 closes its connections to everybody
    if (waiter != rank) {
      const Rank member = status_[static_cast<std::size_t>(waiter)].group_rank;
      expired.emplace_back(waiter,
                           Interruption{false, monitored_member_text(member, rules_->lost_peer_text())});
    }
  }
}

Engine::Interruption Engine::timeout_of(Rank rank) {
  const RankStatus& status = status_[static_cast<std::size_t>(rank)];
  const auto& [since, limit, own, names_all, of_wait] = deadlines_[static_cast<std::size_t>(rank)];
  if (of_wait && !status.in_message()) {
    return {false, rules_->wait_timeout_text(limit)};
  }
  const std::string transport = rules_->timeout_text(limit, hangs_in_send(status));
  if (status.channel == Channel::store) {
    return {false, "Socket Timeout"};
  }
  if (status.channel == Channel::new_group) {
    return {false, creations_.at(status.seq).timeout_text(status.group_rank, limit)};
  }
  if (status.channel != Channel::collectives || status.in_message()) {
    return {false, transport};
  }
  const check::Slot& slot = *matchers_[status.group]->find(status.seq);
  const Op op = matchers_[status.group]->op_of(slot, status.group_rank);
  const bool monitored = op.kind == OpKind::monitored_barrier;
  if (!monitored && options_.debug != DebugLevel::detail) {
    return {false, transport};
  }
  const std::vector<Rank> missing = missing_in(status);
  if (missing.empty()) {
    return {false, transport};  // the collective itself hangs
  }
  if (status.group_rank != 0) {
    return {false, monitored_member_text(status.group_rank, transport)};
  }
  return {false, monitored_root_text(missing, !monitored || names_all, limit, transport)};
}

// Whether a waiting rank hangs in sending: what its transport says then.
bool Engine::hangs_in_send(const RankStatus& status) {
  if (status.channel != Channel::collectives) {
    return false;
  }
  if (status.in_message()) {
    return messengers_[status.group]->at(status.message).op.kind == OpKind::send;
  }
  const check::Stuck* stuck = stuck_of(status);
  return stuck != nullptr && stuck->in_send;
}

// What keeps a rank in its collective; null where the backend cannot tell.
const check::Stuck* Engine::stuck_of(const RankStatus& status) {
  check::Slot* slot = matchers_[status.group]->find(status.seq);
  if (slot == nullptr) {
    return nullptr;
  }
  if (slot->stuck.empty()) {
    slot->stuck = rules_->stuck_in(*matchers_[status.group], *slot);
  }
  return slot->stuck.empty() ? nullptr : &slot->stuck[static_cast<std::size_t>(status.group_rank)];
}

// The members that have not come to a rank's slot, as ranks of the group.
std::vector<Rank> Engine::missing_in(const RankStatus& status) const {
  std::vector<Rank> missing;
  const check::GroupMatcher* matcher = groups_[status.group].calls(status.channel);
  const check::Slot* slot = status.in_message() ? nullptr : matcher->find(status.seq);
  for (Rank member = 0; slot != nullptr && member < matcher->size(); ++member) {
    if (!slot->has(member)) {
      missing.push_back(member);
    }
  }
  return missing;
}

// A wait that ends before anything was proven is an event like others.
void Engine::note_timeout(Rank rank) {
  const RankStatus& status = status_[static_cast<std::size_t>(rank)];
  if (verdict_ || status.in_message() || status.channel == Channel::store) {
    return;
  }
  const check::GroupMatcher& matcher = *groups_[status.group].calls(status.channel);
  if (const check::Slot* slot = matcher.find(status.seq)) {
    notes_->give_up(now_, rank, status, matcher.op_of(*slot, status.group_rank),
                    deadlines_[static_cast<std::size_t>(rank)].limit, status_);
  }
}

// On nccl the host waits for the call, and the communicator ends with its patience.
void Engine::wait_for(const Work& work, Duration timeout) {
  const AfterWait after{next_wait_};
  limit_next_wait(timeout);
  next_wait_.of_wait = true;
  if (queues_launches_ && !aborting_) {
    wait_on_host({.kind = HostWait::Kind::any, .works = {&work, 1}});
  } else {
    wait(work);
  }
}

// Only rank 0 keeps time. The others wait for it as long as for any message.
void Engine::monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) {
  const Work work = issue(op);
  const AfterWait after{next_wait_};
  if (op.rank == 0) {
    limit_next_wait(limits.timeout, limits.wait_all_ranks);
  }
  wait(work);
}

}  // namespace rollcall::sim
