#pragma once

// GroupCalls: calls that make, split and end groups, and first uses of communicators. They are matched like
// collectives, in channels of their own, so that the judge sees which ranks are missing. Ranks that continue are
// released in rank order: the first one creates the group, so its number does not depend on the schedule.

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/engine/group_creation.h"
#include "sim/engine/run.h"
#include "sim/match/group_names.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim {

class GroupCalls {
 public:
  // `run` is borrowed.
  explicit GroupCalls(Run& run) : run_(run) {}

  // The run has one more group.
  void add_group() { channels_.emplace_back(); }

  // The channel's matcher; created for the first call. `find` returns null before.
  check::GroupMatcher& matcher(GroupId group, check::Channel channel);
  const check::GroupMatcher* find(GroupId group, check::Channel channel) const {
    return channels_[group][static_cast<std::size_t>(channel)].get();
  }
  // Enters a call into its slot.
  check::Slot& enter(const Op& op);
  // The same for a new_group, whose rank then goes through the steps of creating the group. `waits`: set to false if
  // there is no rank to wait for.
  check::Slot& enter_creation(const Op& op, bool& waits);
  // For a new_group that only the members call: the group of these members that it means, as the running rank counts.
  // `make(name, ranks)` returns the GroupId of a group that no rank has called for yet.
  template <typename Make>
  GroupId local_group(const RankList& ranks, const std::string& name, Make&& make) {
    const std::int64_t salt = take_local_salt();
    const auto [entry, is_new] = local_.try_emplace({ranks, salt});
    if (is_new) {  // the name depends on the group, not on the rank that came first
      entry->second = make(name.empty() ? fmt::format("local{}.{}", ranks.front(), salt) : name, ranks);
    }
    return entry->second;
  }
  // The running rank holds one group more, or one less.
  void count_held(int change);

  // Releases the ranks whose calls are complete. Returns the ranks whose calls failed, and why.
  Interruptions advance();

  // The rank's wait was given up, for any reason.
  void give_up(Rank rank);
  // The error of a rank that has waited for `limit` in new_group; null if it waits without a limit.
  std::optional<std::string> timeout_text(const check::RankStatus& status, Duration limit) const;
  // Withdraws a dead rank's incomplete calls, by calling `withdraw(matcher, member, group)` for each channel.
  template <typename Withdraw>
  void withdraw(GroupId group, Rank member, Withdraw&& withdraw) {
    for (const std::unique_ptr<check::GroupMatcher>& channel : channels_[group]) {
      if (channel != nullptr) {
        withdraw(*channel, member, run_.groups[group]);
      }
    }
  }

  // The running rank's handle to the group that its call `seq` made. The first rank that asks creates the groups, one
  // per list: `make(name, ranks)` returns a GroupId. Where ranks give different names, the lowest rank's is used,
  // whichever rank asks first.
  template <typename Make>
  ProcessGroup made(const Op& op, const std::string& name, std::int64_t seq, Make&& make) {
    const auto [entry, is_new] = made_.try_emplace({{op.group, check::channel_of(op.kind), seq}, op.numel});
    const std::vector<RankList>& lists = run_.notes->lists(op.numel);
    MadeGroups& groups = entry->second;
    const Rank rank = run_.scheduler->running();
    if (is_new || rank < groups.named_by) {
      groups.named_by = rank;
      const std::vector<std::string> names =
          names_of_made(op.kind, run_.members[op.group].name, seq, name, lists.size());
      for (std::size_t i = 0; i < lists.size(); ++i) {
        if (is_new) {
          groups.ids.push_back(make(names[i], lists[i]));
        } else {
          run_.members[groups.ids[i]].name = names[i];
        }
      }
    }
    const ProcessGroup handle = handle_to(groups.ids, op.kind);
    if (++groups.asked == run_.members[op.group].size()) {
      made_.erase(entry);
    }
    return handle;
  }

 private:
  // A call about groups, as its channel counts it.
  struct ChannelSlot {
    GroupId group;
    check::Channel channel;
    std::int64_t seq;
    friend auto operator<=>(const ChannelSlot&, const ChannelSlot&) = default;
  };
  struct MadeGroups {
    std::vector<GroupId> ids;
    Rank named_by = 0;
    Rank asked = 0;
  };

  std::int64_t take_local_salt();
  void open();
  void close(const ChannelSlot& key);
  ProcessGroup handle_to(std::span<const GroupId> made, OpKind kind) const;

  Run& run_;
  // By group; null while no rank has called.
  std::vector<std::array<std::unique_ptr<check::GroupMatcher>, check::group_channel_count>> channels_;
  std::vector<ChannelSlot> full_;                    // filled up since the last quiescence
  std::map<std::int64_t, GroupCreation> creations_;  // new_group calls in progress, by number
  bool creations_moved_ = false;
  std::map<std::pair<RankList, std::int64_t>, GroupId> local_;  // by members and salt
  std::vector<std::int32_t> held_;  // by rank: groups besides the world; empty while there are none
  std::map<std::pair<ChannelSlot, std::int64_t>, MadeGroups> made_;  // by call and number of its lists
};

}  // namespace rollcall::sim
