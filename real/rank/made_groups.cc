#include "real/rank/made_groups.h"

#include <algorithm>

#include <fmt/core.h>

#include "real/rank/recorder.h"
#include "sim/c10d/store_barrier.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::real {

MadeGroups::MadeGroups(const Seat& seat) : seat_(seat), groups_(seat.groups.begin(), seat.groups.end()) {}

ProcessGroup MadeGroups::find(std::string_view name) const {
  for (const GroupMembers& members : groups_) {
    if (members.name == name) {
      return {members, members.rank_of(seat_.rank)};
    }
  }
  return {};
}

// Every rank counts its own calls, and the n-th of one is taken for the n-th of all others.
ProcessGroup MadeGroups::make(const GroupCall& call, const Connect& connect) {
  if (call.is_local) {
    throw NotImplementedError("real ranks make groups together: use_local_synchronization is only simulated");
  }
  const std::size_t number = groups_.size() - seat_.groups.size() + 1;
  const RankList& wanted = call.ranks.front();
  const GroupMembers& made =
      groups_.emplace_back(GroupMembers{.id = static_cast<GroupId>(groups_.size()),
                                        .name = call.name.empty() ? fmt::format("g{}", number) : call.name,
                                        .ranks = wanted.empty() ? groups_.front().ranks : wanted});
  connect(made, call.timeout.value_or(0));
  if (!traits_of(seat_.torch).new_group_waits_for_all) {
    return {made, made.rank_of(seat_.rank)};
  }
  const std::string step = fmt::format("made-{}", number);
  try {
    wait_for_all(step, call.timeout);
  } catch (const LostPeerError&) {
    throw LostPeerError(store_barrier_timeout_text(seat_.rank, static_cast<std::int64_t>(number) - 1,
                                                   groups_.front().size(), count_of(step), *call.timeout));
  }
  return {made, made.rank_of(seat_.rank)};
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
