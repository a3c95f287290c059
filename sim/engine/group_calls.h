#pragma once

// GroupCalls: calls that make, split and end groups, and first uses of communicators. They are matched like
// collectives, in channels of their own, so that the judge sees who has not come. Ranks that go on are released in
// rank order: who comes first makes the group, and no schedule shows.

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/match/group_names.h"
#include "sim/engine/group_creation.h"
#include "sim/engine/run.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim {

class GroupCalls {
 public:
  // `run` is borrowed.
  explicit GroupCalls(Run& run) : run_(run) {}

  // The run has one more group.
  void add_group() { channels_.emplace_back(); }

  // The channel's matcher; made for the first call, and `find` gives null before.
  check::GroupMatcher& matcher(GroupId group, check::Channel channel);
  const check::GroupMatcher* find(GroupId group, check::Channel channel) const {
    return channels_[group][static_cast<std::size_t>(channel)].get();
  }
  // The call takes its place among those of the others.
  check::Slot& enter(const Op& op);
  // The same of a new_group, whose rank then goes through the steps of its making. `waits`: false when there is
  // nobody to wait for.
  check::Slot& enter_creation(const Op& op, bool& waits);
  // Of a new_group by members only: which of the groups of these members it is, as the running rank counts.
  // `make(name, ranks)` gives the GroupId of one that nobody has called yet.
  template <typename Make>
  GroupId local_group(const RankList& ranks, const std::string& name, Make&& make) {
    const std::int64_t salt = take_local_salt();
    const auto [entry, is_new] = local_.try_emplace({ranks, salt});
    if (is_new) {  // called by what it is, and not by who came first
      entry->second = make(name.empty() ? fmt::format("local{}.{}", ranks.front(), salt) : name, ranks);
    }
    return entry->second;
  }
  // The running rank holds a group more, or one less.
  void count_held(int change);

  // Lets go on who can, since everybody has come. Those that cannot go on, and why.
  Interruptions advance();

  // The rank's wait has been given up, for whatever reason.
  void give_up(Rank rank);
  // What a rank raises that has waited for `limit` in new_group; nothing where it waits without a limit.
  std::optional<std::string> timeout_text(const check::RankStatus& status, Duration limit) const;
  // Takes back what a dead rank has called and others have not come to. `withdraw(matcher, member, group)` does.
  template <typename Withdraw>
  void withdraw(GroupId group, Rank member, Withdraw&& withdraw) {
    for (const std::unique_ptr<check::GroupMatcher>& channel : channels_[group]) {
      if (channel != nullptr) {
        withdraw(*channel, member, run_.groups[group]);
      }
    }
  }

  // The running rank's handle to what its call `seq` made. The first rank that asks makes it, one group per list:
  // `make(name, ranks)` gives its GroupId.
  template <typename Make>
  ProcessGroup made(const Op& op, const std::string& name, std::int64_t seq, Make&& make) {
    const auto [entry, is_new] = made_.try_emplace({{op.group, check::channel_of(op.kind), seq}, op.numel});
    const std::vector<RankList>& lists = run_.notes->lists(op.numel);
    if (is_new) {
      const std::vector<std::string> names =
          names_of_made(op.kind, run_.members[op.group].name, seq, name, lists.size());
      for (std::size_t i = 0; i < lists.size(); ++i) {
        entry->second.ids.push_back(make(names[i], lists[i]));
      }
    }
    const ProcessGroup handle = handle_to(entry->second.ids, op.kind);
    if (++entry->second.asked == run_.members[op.group].size()) {
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
    Rank asked = 0;
  };

  std::int64_t take_local_salt();
  void open();
  void close(const ChannelSlot& key);
  ProcessGroup handle_to(std::span<const GroupId> made, OpKind kind) const;

  Run& run_;
  // By group; null while nobody has called.
  std::vector<std::array<std::unique_ptr<check::GroupMatcher>, check::group_channel_count>> channels_;
  std::vector<ChannelSlot> full_;                    // filled up since the last quiescence
  std::map<std::int64_t, GroupCreation> creations_;  // new_group calls under way, by number
  bool creations_moved_ = false;
  std::map<std::pair<RankList, std::int64_t>, GroupId> local_;  // by members and salt
  std::vector<std::int32_t> held_;  // by rank: groups besides the world; empty while nobody has made any
  std::map<std::pair<ChannelSlot, std::int64_t>, MadeGroups> made_;  // by call and number of its lists
};

}  // namespace rollcall::sim
