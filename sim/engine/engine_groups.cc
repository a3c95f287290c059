// The engine's part about groups that are made, split and ended while the ranks run. Such calls are matched like
// collectives, in channels of their own, so that the judge sees who has not come. Ranks that go on are released
// in rank order: who comes first makes the group, and no schedule shows.

#include <algorithm>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/engine/engine.h"
#include "sim/engine/park_in_channel.h"

namespace rollcall::sim {
namespace {

using check::Channel;
using check::GroupMatcher;
using check::RankStatus;
using check::Slot;

// What a call about groups costs once everybody has come: a word with the store.
constexpr std::int64_t word_bytes = 8;

}  // namespace

ProcessGroup Engine::manage(GroupCall call) {
  if (refuses_calls()) [[unlikely]] {
    return ProcessGroup::non_member();
  }
  ++ops_;
  switch (check::channel_of(call.op.kind)) {
    case Channel::new_group:
      return new_group(std::move(call));
    case Channel::split_group:
      return split_group(std::move(call));
    case Channel::destroy:
      destroy_group(call);
      return ProcessGroup::non_member();
    case Channel::collectives:
    case Channel::first_use:
    case Channel::store:
      break;
  }
  expects(false, "a call about groups makes, splits or ends one");
  return ProcessGroup::non_member();
}

ProcessGroup Engine::new_group(GroupCall call) {
  Op op = call.op;
  op.numel = notes_->number_of(std::move(call.ranks), members_[op.group]);
  Slot& slot = enter_channel(op);
  const std::int64_t seq = slot.seq;
  notes_->note_late_call(now_, op, seq);
  const auto entry =
      creations_.try_emplace(seq, seq, options_.world_size, rules_->traits().exchanges_addresses).first;
  entry->second.enter(op.rank, notes_->lists(op.numel).front());
  creations_moved_ = true;
  wait_in_channel(op, slot, call.timeout);
  return made_group(op, call, seq);
}

ProcessGroup Engine::split_group(GroupCall call) {
  Op op = call.op;
  op.numel = notes_->number_of(std::move(call.ranks), members_[op.group]);
  Slot& slot = enter_channel(op);
  const std::int64_t seq = slot.seq;
  wait_in_channel(op, slot, call.timeout);
  return made_group(op, call, seq);
}

void Engine::destroy_group(const GroupCall& call) {
  const Op& op = call.op;
  if (rules_->traits().destroys_together) {
    synchronize_device();  // ncclCommFinalize waits for what was queued
    wait_in_channel(op, enter_channel(op), call.timeout);
    any_broken_ = broken_[op.group] = true;
  }
  notes_->destroy(op.group, scheduler_->running());
}

GroupMatcher& Engine::channel_matcher(GroupId group, Channel channel) {
  std::unique_ptr<GroupMatcher>& matcher = channels_[group][static_cast<std::size_t>(channel)];
  if (matcher == nullptr) {
    matcher = std::make_unique<GroupMatcher>(members_[group].size());
    groups_[group].others[static_cast<std::size_t>(channel)] = matcher.get();
  }
  return *matcher;
}

Slot& Engine::enter_channel(const Op& op) {
  const Channel channel = check::channel_of(op.kind);
  Slot& slot = channel_matcher(op.group, channel).arrive(op);
  if (slot.differs) {
    notes_->incidents.suspect(now_, op.group, slot.seq, channel);
  }
  if (slot.phase == Slot::Phase::full) {
    full_channels_.push_back({op.group, channel, slot.seq});
  }
  return slot;
}

void Engine::wait_in_channel(const Op& op, Slot& slot, const std::optional<Duration>& limit) {
  RankStatus& status = status_[static_cast<std::size_t>(scheduler_->running())];
  slot.waiters.push_back(scheduler_->running());
  const ParkInChannel wait(status, op.group, check::channel_of(op.kind), op.rank, slot.seq);
  limit_next_wait(limit);
  if (recorder_) {
    recorder_->entered(scheduler_->running(), members_[op.group], op, slot.seq, now_);
  }
  suspend_rank(nullptr);
}

// What everybody has come to is over, unless it is a new_group: that has steps of its own.
void Engine::open_channels() {
  std::sort(full_channels_.begin(), full_channels_.end());
  for (const ChannelSlot& full : full_channels_) {
    Slot& slot = *channel_matcher(full.group, full.channel).find(full.seq);
    if (full.channel != Channel::first_use) {  // first calls may be different ones
      notes_->incidents.inspect_full(now_, full.group, slot);
    }
    if (full.channel == Channel::new_group) {
      continue;
    }
    const Duration cost = full.channel == Channel::first_use
                              ? 0  // no model has the seconds that making a communicator takes
                              : host_cost_.of(slot.reference.kind, word_bytes, members_[full.group].size());
    const Time end = now_ + cost;
    std::sort(slot.waiters.begin(), slot.waiters.end());
    for (const Rank rank : slot.waiters) {
      const RankStatus& status = status_[static_cast<std::size_t>(rank)];
      if (status.state == RankStatus::State::waiting && status.channel == full.channel &&
          status.group == full.group && status.seq == full.seq) {
        release(rank, end);
      }
    }
    close_slot(full, slot);
  }
  full_channels_.clear();
}

void Engine::advance_creations() {
  creations_moved_ = false;
  std::vector<std::int64_t> complete;
  for (auto& [seq, creation] : creations_) {
    const Time end = now_ + host_cost_.of(OpKind::new_group, word_bytes, options_.world_size);
    for (const GroupCreation::Outcome& outcome : creation.advance()) {
      if (outcome.error.empty()) {
        release(outcome.rank, end);
      } else {
        wake_interrupted(outcome.rank, {false, outcome.error});
      }
    }
    if (creation.is_complete()) {
      const ChannelSlot key{world_group, Channel::new_group, seq};
      close_slot(key, *channel_matcher(key.group, key.channel).find(seq));
      complete.push_back(seq);
    }
  }
  for (const std::int64_t seq : complete) {
    creations_.erase(seq);
  }
}

void Engine::close_slot(const ChannelSlot& key, Slot& slot) {
  GroupMatcher& matcher = channel_matcher(key.group, key.channel);
  slot.phase = Slot::Phase::done;
  slot.waiters.clear();
  matcher.retire();
}

// The rank's wait has been given up, for whatever reason.
void Engine::leave_channel(Rank rank) {
  const RankStatus& status = status_[static_cast<std::size_t>(rank)];
  if (recorder_) {
    recorder_->left(rank, now_);
  }
  if (status.channel == Channel::store) {
    store_requests_.erase(rank);
  } else if (status.channel == Channel::new_group) {
    creations_.at(status.seq).give_up(rank);
  }
}

// The rank's wait is over at `end`.
void Engine::release(Rank rank, Time end) {
  status_[static_cast<std::size_t>(rank)].state = RankStatus::State::running;
  if (recorder_) {
    recorder_->left(rank, end);
  }
  events_.add(end, {.kind = Event::Kind::wake, .rank = rank});
}

// The running rank's handle to what its call made. The first rank that asks makes it: one group per list.
ProcessGroup Engine::made_group(const Op& op, const GroupCall& call, std::int64_t seq) {
  if (refuses_calls()) [[unlikely]] {
    return ProcessGroup::non_member();
  }
  const std::pair key{ChannelSlot{op.group, check::channel_of(op.kind), seq}, op.numel};
  const auto [entry, is_new] = made_.try_emplace(key);
  MadeGroups& made = entry->second;
  const std::vector<RankList>& lists = notes_->lists(op.numel);
  for (std::size_t i = 0; i < lists.size() && is_new; ++i) {
    const std::string name = name_of(op, call.name, seq, lists.size() == 1 ? "" : std::to_string(i));
    made.ids.push_back(add_group(name, lists[i], call.timeout.value_or(0)));
    if (op.kind == OpKind::split_group) {
      lazy_[made.ids.back()] = false;  // ncclCommSplit has made its communicator
    }
  }
  const Rank self = scheduler_->running();
  ProcessGroup handle = ProcessGroup::non_member();
  for (const GroupId id : made.ids) {
    if (const Rank rank = members_[id].rank_of(self); rank >= 0) {
      handle = ProcessGroup(members_[id], rank);
    } else if (op.kind == OpKind::new_group) {
      handle = ProcessGroup(members_[id], -1);  // its name is worth keeping
    }
  }
  if (++made.asked == members_[op.group].size()) {
    made_.erase(entry);
  }
  return handle;
}

// What a group is called that its program gave no name: g1, g2, ... in the order of the calls.
std::string Engine::name_of(const Op& op, const std::string& given, std::int64_t seq,
                            const std::string& index) const {
  if (!given.empty()) {
    return given + index;
  }
  return op.kind == OpKind::new_group
             ? fmt::format("g{}", seq + 1)
             : fmt::format("{}.split{}{}{}", members_[op.group].name, seq, index.empty() ? "" : ".", index);
}

}  // namespace rollcall::sim
