#include "sim/engine/group_calls.h"

#include <algorithm>

namespace rollcall::sim {
namespace {

using check::Channel;
using check::GroupMatcher;
using check::RankStatus;
using check::Slot;

// The cost of a call about groups once all ranks have arrived: one word exchanged with the store.
constexpr std::int64_t word_bytes = 8;

}  // namespace

GroupMatcher& GroupCalls::matcher(GroupId group, Channel channel) {
  std::unique_ptr<GroupMatcher>& matcher = channels_[group][static_cast<std::size_t>(channel)];
  if (matcher == nullptr) {
    matcher = std::make_unique<GroupMatcher>(run_.members[group].size());
    run_.groups[group].others[static_cast<std::size_t>(channel)] = matcher.get();
  }
  return *matcher;
}

Slot& GroupCalls::enter(const Op& op) {
  const Channel channel = check::channel_of(op.kind);
  expects(channel != Channel::collectives, "collectives have a matcher of their own");
  expects(channel != Channel::store, "the store matches nothing");
  Slot& slot = matcher(op.group, channel).arrive(op);
  if (slot.differs) {
    run_.notes->incidents.suspect(run_.now, op.group, slot.seq, channel);
  }
  if (slot.phase == Slot::Phase::full) {
    full_.push_back({op.group, channel, slot.seq});
  }
  return slot;
}

Slot& GroupCalls::enter_creation(const Op& op, bool& waits) {
  Slot& slot = enter(op);
  GroupCreation::Rules rules{.waits_for_all = run_.new_group_waits_for_all()};
  if (run_.rules->traits().exchanges_addresses) {
    rules.rendezvous = run_.torch->gloo_rendezvous;
  }
  const auto entry = creations_.try_emplace(slot.seq, slot.seq, run_.options.world_size, rules).first;
  waits = entry->second.enter(op.rank, run_.notes->lists(op.numel).front());
  if (!waits) {
    slot.let_through(op.rank);
  }
  creations_moved_ = true;
  return slot;
}

// The number that distinguishes groups of the same members, in a name that every member makes up on its own
// (distributed_c10d.py, _hash_ranks_to_str). Members with different counts never find each other.
std::int64_t GroupCalls::take_local_salt() {
  const Rank self = run_.scheduler->running();
  if (run_.torch->local_names == LocalGroupNames::salted_by_groups) {
    return held_.empty() ? 0 : held_[static_cast<std::size_t>(self)];
  }
  GroupMatcher& calls = matcher(world_group, Channel::new_group);
  const std::int64_t salt = calls.calls_of(self);
  calls.pass(self);  // the names of its other groups count this call, too
  return salt;
}

void GroupCalls::count_held(int change) {
  held_.resize(run_.ranks());
  held_[static_cast<std::size_t>(run_.scheduler->running())] += change;
}

// Ends the calls that all ranks have made, except new_group, which has steps of its own.
void GroupCalls::open() {
  std::sort(full_.begin(), full_.end());
  for (const ChannelSlot& full : full_) {
    Slot& slot = *matcher(full.group, full.channel).find(full.seq);
    expects(slot.phase == Slot::Phase::full, "everybody has come");
    if (full.channel != Channel::first_use) {  // first calls may be different ones
      run_.notes->incidents.inspect_full(run_.now, full.group, slot);
    }
    if (full.channel == Channel::new_group && full.group == world_group) {
      continue;
    }
    const Duration cost =
        full.channel == Channel::first_use
            ? 0  // no model covers the seconds that making a communicator takes
            : run_.host_cost.of(slot.reference.kind, word_bytes, run_.members[full.group].size());
    std::sort(slot.waiters.begin(), slot.waiters.end());
    for (const Rank rank : slot.waiters) {
      const RankStatus& status = run_.status_of(rank);
      if (run_.waits(rank) && status.channel == full.channel && status.group == full.group &&
          status.seq == full.seq) {
        run_.release(rank, run_.now + cost);
      }
    }
    close(full);
  }
  full_.clear();
}

Interruptions GroupCalls::advance() {
  open();
  Interruptions failed;
  if (!std::exchange(creations_moved_, false)) {
    return failed;
  }
  for (auto& [seq, creation] : creations_) {
    Slot& slot = *matcher(world_group, Channel::new_group).find(seq);
    const Time end = run_.now + run_.host_cost.of(OpKind::new_group, word_bytes, run_.options.world_size);
    for (const GroupCreation::Outcome& outcome : creation.advance()) {
      if (outcome.error.empty()) {
        slot.let_through(outcome.rank);
        run_.release(outcome.rank, end);
      } else {
        failed.emplace_back(outcome.rank, Interruption{false, outcome.error});
      }
    }
    if (creation.is_complete()) {
      close({world_group, Channel::new_group, seq});
    }
  }
  std::erase_if(creations_, [](const auto& each) { return each.second.is_complete(); });
  return failed;
}

void GroupCalls::close(const ChannelSlot& key) {
  GroupMatcher& matcher = this->matcher(key.group, key.channel);
  Slot& slot = *matcher.find(key.seq);
  slot.phase = Slot::Phase::done;
  slot.waiters.clear();
  matcher.retire();
}

void GroupCalls::give_up(Rank rank) {
  const RankStatus& status = run_.status_of(rank);
  if (status.channel == Channel::new_group && status.group == world_group) {
    creations_.at(status.seq).give_up(rank);
  }
}

std::optional<std::string> GroupCalls::timeout_text(const RankStatus& status, Duration limit) const {
  if (status.group != world_group) {
    return "Wait timeout";
  }
  return creations_.at(status.seq).timeout_text(status.group_rank, limit);
}

ProcessGroup GroupCalls::handle_to(std::span<const GroupId> made, OpKind kind) const {
  const Rank self = run_.scheduler->running();
  ProcessGroup handle = ProcessGroup::non_member();
  for (const GroupId id : made) {
    const GroupMembers& group = run_.members[id];
    if (const Rank rank = group.rank_of(self); rank >= 0) {
      handle = ProcessGroup(group, rank);
    } else if (kind == OpKind::new_group) {
      handle = ProcessGroup(group, -1);  // for a non-member, which keeps the group's name
    }
  }
  return handle;
}

}  // namespace rollcall::sim
