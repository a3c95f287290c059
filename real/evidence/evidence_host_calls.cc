// EvidenceBuilder's part about calls of hosts: groups that the ranks make, and the store.

#include <algorithm>

#include <fmt/core.h>

#include "real/evidence/evidence_builder.h"

namespace rollcall::real {

using check::Channel;
using check::RankStatus;

// Whoever comes first says who its members are. Who says otherwise is found by comparing the calls.
void EvidenceBuilder::make_group(const Call& call, const std::string& name) {
  const auto id = static_cast<GroupId>(first_made_ + static_cast<std::size_t>(call.seq));
  if (id < groups_.size()) {
    return;
  }
  add_group({id, name.empty() ? fmt::format("g{}", call.seq + 1) : name,
             rank_lists_[static_cast<std::size_t>(call.op.numel)].front()},
            call.limit.value_or(options_.timeout));
}

// Equal lists have one number, so that comparing calls is comparing numbers.
std::int64_t EvidenceBuilder::number_of(const std::vector<RankList>& lists) {
  std::vector<RankList> named = lists;
  for (RankList& ranks : named) {
    if (ranks.empty()) {
      ranks = groups_.front().ranks;
    }
  }
  const auto found = std::ranges::find(rank_lists_, named);
  const auto number = found - rank_lists_.begin();
  if (found == rank_lists_.end()) {
    rank_lists_.push_back(std::move(named));
  }
  return number;
}

// What has been read is known; what has been written decides who still waits.
void EvidenceBuilder::complete_store_call(Rank rank, const Call& call, const Record& record) {
  using Kind = StoreCall::Kind;
  const StoreCall& asked = *call.store;
  if (asked.kind == Kind::set || asked.kind == Kind::add || asked.kind == Kind::compare_set ||
      asked.kind == Kind::delete_key) {
    store_.apply(asked);
  }
  if (asked.want && record.text != *asked.want) {
    incidents_->store({record.at, rank, call.op, asked.keys.front(), record.text, *asked.want});
  }
}

// Of the keys that ranks wait for, those that nobody has set.
void EvidenceBuilder::find_store_waits() {
  for (std::size_t rank = 0; rank < status_.size(); ++rank) {
    if (status_[rank].state == RankStatus::State::waiting && status_[rank].channel == Channel::store) {
      store_waits_[rank].keys = store_.missing(store_waits_[rank].keys);
    }
  }
}

// Groups that a rank left alive when it finished. The world's end is that of all its groups.
void EvidenceBuilder::find_leaks() {
  for (std::size_t id = 0; id < groups_.size() && options_.check_leaks; ++id) {
    check::Leak leak{groups_[id].id, {}};
    for (const Rank rank : groups_[id].ranks) {
      const bool destroyed =
          destroyed_.contains({rank, leak.group}) || destroyed_.contains({rank, world_group});
      if (!destroyed && status_[static_cast<std::size_t>(rank)].state == RankStatus::State::finished) {
        leak.ranks.push_back(rank);
      }
    }
    if (!leak.ranks.empty()) {
      leaks_.push_back(std::move(leak));
    }
  }
}

}  // namespace rollcall::real
