// The engine's part about ranks that give up because their Deadline is over: the error that each raises, and the
// connections that it closes.

#include <algorithm>
#include <utility>

#include "sim/c10d/barrier_texts.h"
#include "sim/c10d/store.h"
#include "sim/engine/engine.h"
#include "sim/judge/judge.h"
#include "sim/match/wait_graph.h"

namespace rollcall::sim {
namespace {

using check::Channel;
using check::RankStatus;

// Drops a limit that a call named for its wait if it did not wait.
struct AfterWait {
  Deadlines& deadlines;
  ~AfterWait() { deadlines.forget_next(); }
};

}  // namespace

// The ranks whose deadline comes first give up. True if there was one.
bool Engine::expire_timeouts() {
  if (let_some_through()) {
    return true;
  }
  resolve_host_waits();
  const std::optional<Time> first = deadlines_.first(false);
  if (!first) {
    return false;
  }
  run_.now = std::max(run_.now, *first);
  if (first != deadlines_.first(true)) {  // otherwise the program itself has said how long to wait
    judge_cycle();
    notify_settled();
  }
  Interruptions expired;
  for (Rank rank = 0; rank < run_.options.world_size; ++rank) {
    if (deadlines_.is_over(rank) && !waits_without_limit(rank)) {
      timeouts_ += verdict_ ? 0 : 1;
      note_timeout(rank);
      give_up(rank, expired);
    }
  }
  interrupt_all(std::move(expired));
  return true;
}

// Ranks that wait for each other are a deadlock, although another rank still works: that is proven before they give up.
void Engine::judge_cycle() {
  if (verdict_) {
    return;
  }
  check::Evidence now = evidence();
  const std::vector<RankStatus> ranks = check::with_the_hopeful_at_work(now, check::blocked_slots(now));
  now.ranks = ranks;
  if (check::find_blame(now, check::blocked_slots(now)).cycle) {
    verdict_ = check::judge(now);
  }
}

// True if the rank's wait has no limit, whatever its group's limit is. Lifts its deadline then.
bool Engine::waits_without_limit(Rank rank) {
  const RankStatus& status = run_.status_of(rank);
  const bool is_unlimited =
      status.channel == Channel::new_group && !group_calls_.timeout_text(status, deadlines_.of(rank).limit);
  if (is_unlimited) {
    deadlines_.lift(rank);
  }
  return is_unlimited;
}

// Interrupts waits. The ranks are removed from the waiter lists of their slots all at once: one by one, a million would
// take a million times as long.
void Engine::interrupt_all(Interruptions leaving) {
  std::vector<bool> leaves(run_.status.size(), false);
  for (const auto& [rank, interruption] : leaving) {
    leaves[static_cast<std::size_t>(rank)] = true;
  }
  const check::Slot* done = nullptr;
  for (const auto& [rank, interruption] : leaving) {
    const RankStatus& status = run_.status_of(rank);
    const bool in_slot = status.channel == Channel::collectives && !status.in_message() && !run_.queues_calls;
    check::Slot* slot = in_slot ? run_.matchers[status.group]->find(status.seq) : nullptr;
    if (slot != nullptr && slot != done) {
      std::erase_if(slot->waiters, [&](Rank waiter) { return leaves[static_cast<std::size_t>(waiter)]; });
      done = slot;
    }
  }
  for (auto& [rank, interruption] : leaving) {
    if (run_.waits(rank)) {  // it may be there twice
      wake_interrupted(rank, std::move(interruption));
    }
  }
}

// All members have come to a call that fits, so nobody has waited for too long. How long the call still takes does not
// count: on gloo the limit is that of each of its messages (gloo/transport/tcp/unbound_buffer.cc), and how long these
// take is not modeled (UniformCost). On nccl it counts, because the limit is that of the whole call; but what DETAIL
// compares before is over.
void Engine::lift_deadlines(GroupId group, const check::Slot& slot) {
  const bool is_limited = run_.queues_calls && run_.options.debug != DebugLevel::detail;
  if (is_limited || slot.differs || slot.raises) {
    return;
  }
  for (const Rank rank : run_.members[group].ranks) {
    const RankStatus& status = run_.status_of(rank);
    if (run_.queues_calls) {
      const HostWait& wait = host_waits_[static_cast<std::size_t>(rank)];
      if (wait.kind == HostWait::Kind::collective && wait.work.group() == group &&
          wait.work.seq() == slot.seq) {
        deadlines_.lift(rank);
      }
    } else if (status.waits() && status.channel == Channel::collectives && status.group == group &&
               !status.in_message() && status.seq == slot.seq && !deadlines_.of(rank).of_wait) {
      deadlines_.lift(rank);
    }
  }
}

// Likewise for messages on gloo whose other end has come. True if there was one.
bool Engine::lift_deadlines_of_messages() {
  bool anybody = false;
  for (Rank rank = 0; rank < run_.options.world_size && !run_.queues_calls; ++rank) {
    const RankStatus& status = run_.status_of(rank);
    const bool is_under_way =
        status.waits() && status.in_message() &&
        messages_.of(status.group).at(status.message).phase == check::Message::Phase::matched;
    if (is_under_way && deadlines_.of(rank).limit > 0) {
      deadlines_.lift(rank);
      anybody = true;
    }
  }
  return anybody;
}

void Engine::give_up(Rank rank, Interruptions& expired) {
  const RankStatus& status = run_.status_of(rank);
  expired.emplace_back(rank, timeout_of(rank));
  if (status.channel != Channel::collectives) {
    return;
  }
  if (deadlines_.of(rank).of_wait && !status.in_message() && !run_.queues_calls) {
    return;
  }
  broken_[status.group] = any_broken_ = true;
  check::Slot* slot = status.in_message() ? nullptr : run_.matchers[status.group]->find(status.seq);
  if (slot == nullptr || slot->reference.kind != OpKind::monitored_barrier || status.group_rank != 0) {
    return;
  }
  for (const Rank waiter : slot->waiters) {  // rank 0 closes its connections to all ranks
    if (waiter != rank) {
      const Rank member = run_.status_of(waiter).group_rank;
      expired.emplace_back(waiter,
                           Interruption{false, monitored_member_text(member, run_.rules->lost_peer_text())});
    }
  }
}

Interruption Engine::timeout_of(Rank rank) {
  const RankStatus& status = run_.status_of(rank);
  const auto& [since, limit, own, names_all, of_wait] = deadlines_.of(rank);
  if (of_wait && !status.in_message()) {
    return {false, run_.rules->wait_timeout_text(limit)};
  }
  const std::string transport = run_.rules->timeout_text(limit, hangs_in_send(status));
  if (status.channel == Channel::store) {
    const StoreCall& call = store_.requests().at(rank)->call;
    const RuntimeError late = store_timeout(*run_.torch, limit, call.keys);
    return {.text = late.what(), .type = late.type()};
  }
  if (status.channel == Channel::new_group) {
    return {false, *group_calls_.timeout_text(status, limit)};
  }
  if (status.channel != Channel::collectives || status.in_message()) {
    return {false, transport};
  }
  const check::Slot* slot = run_.matchers[status.group]->find(status.seq);
  if (slot == nullptr) {
    return {false, transport};  // the call is queued, and its GPU has not reached it
  }
  const Op op = run_.matchers[status.group]->op_of(*slot, status.group_rank);
  const bool monitored = op.kind == OpKind::monitored_barrier;
  if (!monitored && run_.options.debug != DebugLevel::detail) {
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

// True if a waiting rank hangs in a send: the transport's error text says so.
bool Engine::hangs_in_send(const RankStatus& status) {
  if (status.channel != Channel::collectives) {
    return false;
  }
  if (status.in_message()) {
    return messages_.of(status.group).at(status.message).op.kind == OpKind::send;
  }
  const check::Stuck* stuck = stuck_of(status);
  return stuck != nullptr && stuck->in_send;
}

// What keeps a rank in its collective; null if the backend cannot tell.
const check::Stuck* Engine::stuck_of(const RankStatus& status) {
  check::Slot* slot = run_.matchers[status.group]->find(status.seq);
  if (slot == nullptr) {
    return nullptr;
  }
  if (slot->stuck.empty()) {
    slot->stuck = run_.rules->stuck_in(*run_.matchers[status.group], *slot);
  }
  return slot->stuck.empty() ? nullptr : &slot->stuck[static_cast<std::size_t>(status.group_rank)];
}

// The members that have not reached a rank's slot, as ranks of the group.
std::vector<Rank> Engine::missing_in(const RankStatus& status) const {
  std::vector<Rank> missing;
  const check::GroupMatcher* matcher = run_.groups[status.group].calls(status.channel);
  const check::Slot* slot = status.in_message() ? nullptr : matcher->find(status.seq);
  for (Rank member = 0; slot != nullptr && member < matcher->size(); ++member) {
    if (!slot->has(member)) {
      missing.push_back(member);
    }
  }
  return missing;
}

// A wait that ends before anything was proven is an event like any other.
void Engine::note_timeout(Rank rank) {
  const RankStatus& status = run_.status_of(rank);
  if (verdict_ || status.channel == Channel::store) {
    return;
  }
  if (status.in_message()) {
    run_.notes->give_up(run_.now, rank, messages_.of(status.group).at(status.message),
                        deadlines_.of(rank).limit, run_.status);
    return;
  }
  const check::GroupMatcher& matcher = *run_.groups[status.group].calls(status.channel);
  if (const check::Slot* slot = matcher.find(status.seq)) {
    run_.notes->give_up(run_.now, rank, status, matcher.op_of(*slot, status.group_rank),
                        deadlines_.of(rank).limit, run_.status);
    watches_issues_ = watches_issues_ || run_.notes->has_given_up();  // others may come late
  }
}

// On nccl the host waits for the call, and the communicator is aborted if the wait times out.
void Engine::wait_for(const Work& work, Duration timeout) {
  const AfterWait after{deadlines_};
  deadlines_.limit_next({.limit = timeout, .own = true, .of_wait = true});
  if (run_.queues_calls && !aborting_) {
    wait_on_host({.kind = HostWait::Kind::any, .works = {&work, 1}});
  } else {
    wait(work);
  }
}

// Only rank 0 has the barrier's timeout. The others wait for it as long as for any message.
void Engine::monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) {
  const Work work = issue(op);
  const AfterWait after{deadlines_};
  if (op.rank == 0) {
    deadlines_.limit_next(
        {.limit = limits.timeout.value_or(0), .own = true, .names_all = limits.wait_all_ranks});
  }
  wait(work);
}

}  // namespace rollcall::sim
