#include "real/rank/made_groups.h"

#include <algorithm>

#include <fmt/core.h>

#include "real/rank/recorder.h"
#include "sim/c10d/barrier_texts.h"
#include "sim/match/group_names.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::real {

MadeGroups::MadeGroups(const Seat& seat) : seat_(seat), groups_(seat.groups.begin(), seat.groups.end()) {}

ProcessGroup MadeGroups::find(std::string_view name) const {
  const auto found = std::ranges::find(groups_, name, &GroupMembers::name);
  return found == groups_.end() ? ProcessGroup() : ProcessGroup(*found, found->rank_of(seat_.rank));
}

// Every rank counts its own calls, and the n-th of one rank is matched with the n-th of all others.
ProcessGroup MadeGroups::make(const GroupCall& call, const Connect& connect) {
  if (call.is_local) {
    throw NotImplementedError("real ranks make groups together: use_local_synchronization is only simulated");
  }
  const std::int64_t number = made_++;
  const RankList& wanted = call.ranks.front();
  const GroupMembers& made =
      groups_.emplace_back(GroupMembers{.id = static_cast<GroupId>(groups_.size()),
                                        .name = names_of_made(call.op.kind, {}, number, call.name, 1).front(),
                                        .ranks = wanted.empty() ? groups_.front().ranks : wanted});
  connect(made, call.timeout.value_or(0));
  if (!traits_of(seat_.torch).new_group_waits_for_all) {
    return {made, made.rank_of(seat_.rank)};
  }
  const std::string step = fmt::format("made-{}", number + 1);
  try {
    wait_for_all(step, call.timeout);
  } catch (const LostPeerError&) {
    throw LostPeerError(store_barrier_timeout_text(seat_.rank, number, groups_.front().size(), count_of(step),
                                                   *call.timeout));
  }
  return {made, made.rank_of(seat_.rank)};
}

ProcessGroup MadeGroups::split(const GroupCall& call, const ConnectParts& connect) {
  std::vector<const GroupMembers*> parts;
  const std::vector<std::string> names = names_of_made(
      call.op.kind, groups_[call.op.group].name, splits_[call.op.group]++, call.name, call.ranks.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto id = static_cast<GroupId>(groups_.size());
    parts.push_back(&groups_.emplace_back(GroupMembers{.id = id, .name = names[i], .ranks = call.ranks[i]}));
  }
  connect(parts, call.timeout.value_or(0));
  const auto own = std::ranges::find_if(
      parts, [this](const GroupMembers* part) { return part->rank_of(seat_.rank) >= 0; });
  return own == parts.end() ? ProcessGroup::non_member() : ProcessGroup(**own, (*own)->rank_of(seat_.rank));
}

Rank MadeGroups::count_of(std::string_view step) const {
  return static_cast<Rank>(std::ranges::count_if(
      groups_.front().ranks, [&](Rank rank) { return seat_.store->has(fmt::format("{}-{}", step, rank)); }));
}

void MadeGroups::wait_for_all(std::string_view step, std::optional<Duration> timeout) const {
  seat_.store->set(fmt::format("{}-{}", step, seat_.rank), "1");
  for (const Rank rank : groups_.front().ranks) {
    seat_.store->get(fmt::format("{}-{}", step, rank), timeout);
  }
}

void refuse_call(OpKind kind) {
  throw NotImplementedError(fmt::format("this backend does not support {}", to_string(kind)));
}

}  // namespace rollcall::real
