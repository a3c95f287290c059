// The engine's part about a slot whose time has come: computing the results, and letting the members continue.

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/c10d/apply.h"
#include "sim/engine/engine.h"
#include "sim/match/detail_check.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::GroupMatcher;
using check::RankStatus;
using check::Slot;

std::string too_dense(const Op& op, std::int64_t bytes, std::int64_t limit) {
  constexpr std::int64_t mebi = 1024 * 1024;
  return fmt::format(
      "{}: the results differ from element to element and need {} MiB in total, more than the {} MiB allowed "
      "for one simulated call; use smaller tensors or equal values",
      to_string(op.kind), bytes / mebi, limit / mebi);
}

}  // namespace

void Engine::complete(GroupId group, Slot& slot, const std::optional<cost::Contention::Past>& past) {
  if (slot.differs || slot.raises) [[unlikely]] {
    settle(group, slot);
    return;
  }
  const Op& op = slot.reference;
  if (has_own_order_ && has_reduce_op(op.kind) && run_.rules->complete(op, slot)) {
    // with the bits of the backend's own order of additions
  } else if (slot.uniform && has_uniform_form(op.kind) && op.reduce != ReduceOp::premul_sum) {
    apply_uniform(op, slot.values, slot.tensors);
  } else if (has_tensor(op.kind)) {
    std::vector<OpTensors> tensors;
    for (Rank member = 0; member < run_.members[group].size(); ++member) {
      tensors.push_back(run_.matchers[group]->op_of(slot, member).tensors);
    }
    if (const std::int64_t bytes = dense_bytes(op, tensors); bytes > run_.options.limits.dense_bytes) {
      slot.fates.assign(tensors.size(), Fate::fails);
      slot.failures.assign(tensors.size(), too_dense(op, bytes, run_.options.limits.dense_bytes));
      deal_fates(group, slot);
      return;
    }
    apply_op(op, tensors);
  }
  slot.phase = Slot::Phase::done;
  tell_members(group, slot);
  if (run_.recorder) [[unlikely]] {
    std::string remark = cost_->interval_of(op, run_.members[group]);
    const std::string lost =
        past ? slowed_text(run_.now - past->start, past->alone, past->because) : std::string();
    remark += (remark.empty() || lost.empty() ? "" : ", ") + lost;
    run_.recorder->finished(run_.groups[group], slot, run_.now, remark);
  }
  if (run_.queues_calls) [[unlikely]] {
    finish_on_devices(group, slot);
    return;
  }
  for (const Rank rank : slot.waiters) {
    wake(rank);
  }
  slot.waiters.clear();
}

// A full slot whose calls disagree, or cannot be run: every member ends as on the real backend.
void Engine::settle(GroupId group, Slot& slot) {
  GroupMatcher& matcher = *run_.matchers[group];
  const std::vector<std::string> refused = run_.options.debug == DebugLevel::detail
                                               ? detail_mismatch(matcher, slot, *run_.torch)
                                               : std::vector<std::string>();
  if (refused.empty()) {
    run_.rules->settle(matcher, slot);
  } else {
    slot.fates.assign(refused.size(), Fate::fails);
    slot.failures = refused;
  }
  deal_fates(group, slot);
}

// The slot's results are there now, whether or not its members wait.
void Engine::tell_members(GroupId group, const Slot& slot) const {
  if (run_.learner != nullptr) [[unlikely]] {
    for (const Rank rank : run_.members[group].ranks) {
      run_.learned(rank, group, slot.seq);
    }
  }
}

// Every member continues, stays or ends as its fate says.
void Engine::deal_fates(GroupId group, Slot& slot) {
  const bool all_complete =
      std::ranges::all_of(slot.fates, [](Fate fate) { return fate == Fate::completes; });
  slot.phase = all_complete ? Slot::Phase::done : Slot::Phase::irregular;
  tell_members(group, slot);
  if (run_.recorder) {
    run_.recorder->finished(run_.groups[group], slot, run_.now);
  }
  if (run_.queues_calls) {
    finish_on_devices(group, slot);
    return;
  }
  end_elsewhere(group, slot);
  std::vector<Rank> staying;
  for (const Rank rank : std::exchange(slot.waiters, {})) {
    const auto member = static_cast<std::size_t>(run_.status_of(rank).group_rank);
    switch (slot.fates[member]) {
      case Fate::completes:
        wake(rank);
        break;
      case Fate::hangs:
        staying.push_back(rank);
        break;
      case Fate::fails:
      case Fate::crashes:
        wake_interrupted(rank, {slot.fates[member] == Fate::crashes, slot.failures[member]});
        break;
    }
  }
  slot.waiters = std::move(staying);
}

// A call that its process does not survive ends it whether its rank waits for the call or does something else.
void Engine::end_elsewhere(GroupId group, const Slot& slot) {
  const RankList& ranks = run_.members[group].ranks;
  for (std::size_t member = 0; member < slot.fates.size(); ++member) {
    const Rank rank = ranks[member];
    const RankStatus::State state = run_.status_of(rank).state;
    const bool is_alive = state == RankStatus::State::running || state == RankStatus::State::waiting;
    if (slot.fates[member] == Fate::crashes && is_alive &&
        std::ranges::find(slot.waiters, rank) == slot.waiters.end()) {
      interrupt_rank(rank, {true, slot.failures[member]});
    }
  }
}

// Interrupts the rank's wait, or the next one.
void Engine::interrupt_rank(Rank rank, Interruption interruption) {
  if (run_.waits(rank)) {
    wake_interrupted(rank, std::move(interruption));
  } else {
    interruptions_.emplace(rank, std::move(interruption));
  }
}

// On backends whose collectives are messages, some members get through although others never arrive. This is checked
// only when nothing else can move, or when a wait times out: until then the others may still arrive, and there is no
// observable difference. True if some rank continues.
bool Engine::let_some_through() {
  if (run_.queues_calls || run_.options.debug == DebugLevel::detail) {
    return false;  // on GPUs kernels wait for each other; under DETAIL a barrier comes first
  }
  bool anybody = false;
  for (std::size_t group = 0; group < run_.matchers.size(); ++group) {
    for (std::int64_t seq = run_.matchers[group]->first_live(); seq < run_.matchers[group]->end(); ++seq) {
      Slot& slot = *run_.matchers[group]->find(seq);
      if (slot.phase == Slot::Phase::collecting && !slot.waiters.empty()) {
        anybody = let_some_through(static_cast<GroupId>(group), slot) || anybody;
      }
    }
  }
  return anybody;
}

bool Engine::let_some_through(GroupId group, Slot& slot) {
  run_.rules->settle_partly(*run_.matchers[group], slot);
  if (slot.fates.empty()) {
    return false;
  }
  const auto is_blocked_here = [&](Rank rank) {  // it may be blocked in another call, and wait here as well
    const RankStatus& status = run_.status_of(rank);
    return status.group == group && status.seq == slot.seq;
  };
  std::vector<Rank> staying;
  std::vector<std::pair<Rank, std::string>> dying;
  bool anybody = false;
  for (const Rank rank : std::exchange(slot.waiters, {})) {
    const Rank member = run_.members[group].rank_of(rank);
    const auto at = static_cast<std::size_t>(member);
    expects(!slot.is_through(member), "who got through does not wait");
    if (slot.fates[at] == Fate::completes) {
      if (run_.recorder) {
        run_.recorder->got_through(run_.groups[group], slot, member, run_.now);
      }
      slot.let_through(member);
      detach(member, slot);
      wake(rank);
      anybody = true;
    } else if (slot.fates[at] == Fate::crashes && is_blocked_here(rank)) {
      dying.emplace_back(rank, slot.failures[at]);
    } else {
      staying.push_back(rank);
    }
  }
  slot.waiters = std::move(staying);
  slot.fates.clear();
  slot.failures.clear();
  for (auto& [rank, text] : dying) {
    wake_interrupted(rank, {true, std::move(text)});
    anybody = true;
  }
  return anybody;
}

// The member has continued, and its tensors belong to its program again: the slot keeps copies.
void Engine::detach(Rank member, Slot& slot) const {
  const auto at = static_cast<std::size_t>(member);
  const auto copy = [&slot](Storage*& storage) {
    if (storage != nullptr) {
      slot.retained.push_back(Tensor::share(*storage).clone());
      storage = slot.retained.back().storage();
    }
  };
  const auto copy_list = [&slot](const TensorList*& list) {
    if (list != nullptr) {
      auto clones = std::make_unique<TensorList>();
      for (const Tensor& tensor : *list) {
        clones->push_back(tensor.clone());
      }
      list = clones.get();
      slot.retained_lists.push_back(std::move(clones));
    }
  };
  if (run_.matchers[static_cast<std::size_t>(slot.reference.group)]->op_of(slot, member).tensors.input !=
      nullptr) {
    copy(slot.tensors[at]);
  }
  if (!slot.ops.empty()) {
    OpTensors& tensors = slot.ops[at].tensors;
    tensors.input = tensors.input != nullptr ? slot.tensors[at] : nullptr;
    copy(tensors.output);
    copy_list(tensors.inputs);
    copy_list(tensors.outputs);
    if (tensors.splits != nullptr) {
      slot.retained_splits.push_back(std::make_unique<SplitSizes>(*tensors.splits));
      tensors.splits = slot.retained_splits.back().get();
    }
  }
  if (!slot.deviants.empty() && slot.deviant_of[at] >= 0) {
    OpTensors& tensors = slot.deviants[static_cast<std::size_t>(slot.deviant_of[at])].tensors;
    tensors.input = tensors.input != nullptr ? slot.tensors[at] : nullptr;
  }
}

void Engine::wake(Rank rank) {
  if (!run_.waits(rank)) {
    return;  // it waited for any of several calls, and another one was first
  }
  run_.status_of(rank).state = RankStatus::State::running;
  run_.learned(rank);
  run_.scheduler->make_ready(rank);
}

// Interrupts a rank's wait; the call that it waited for must not wake it again.
void Engine::wake_interrupted(Rank rank, Interruption interruption) {
  const RankStatus& status = run_.status_of(rank);
  const bool in_slot = status.channel == check::Channel::collectives && !status.in_message();
  if (Slot* slot = in_slot ? run_.matchers[status.group]->find(status.seq) : nullptr) {
    slot->given_up = true;
  }
  leave_channel(rank);
  std::erase_if(postings_, [rank](const Posting& posting) { return posting.rank == rank; });
  if (run_.queues_calls) {
    host_waits_[static_cast<std::size_t>(rank)] = {};
  } else if (status.channel != check::Channel::collectives) {
    // no slot and no message refers to it
  } else if (status.in_message()) {
    messages_.give_up(status);
  } else if (Slot* slot = run_.matchers[status.group]->find(status.seq)) {
    std::erase(slot->waiters, rank);
    // The call stays in its slot, and may complete after the rank has dropped its tensors.
    retain(run_.matchers[status.group]->op_of(*slot, status.group_rank), *slot);
  }
  interruptions_.emplace(rank, std::move(interruption));
  wake(rank);
}

}  // namespace rollcall::sim
