#include "sim/engine/group_creation.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/c10d/store_barrier.h"

namespace rollcall::sim {
namespace {

constexpr std::size_t address_bytes = 136;  // of one pair (gloo/transport/tcp/address.h)

}  // namespace

GroupCreation::GroupCreation(std::int64_t number, Rank world_size, bool exchanges_addresses)
    : number_(number),
      exchanges_addresses_(exchanges_addresses),
      participants_(static_cast<std::size_t>(world_size)) {}

void GroupCreation::enter(Rank rank, const RankList& ranks) {
  Participant& participant = participants_[static_cast<std::size_t>(rank)];
  const auto found = std::ranges::lower_bound(ranks, rank);
  if (found == ranks.end() || *found != rank || !exchanges_addresses_) {
    participant.phase = Phase::barrier;
    ++counted_in_;
    return;
  }
  participant.phase = Phase::exchange;
  participant.group_rank = static_cast<Rank>(found - ranks.begin());
  participant.group_size = ranks.size();
}

void GroupCreation::give_up(Rank rank) { participants_[static_cast<std::size_t>(rank)].phase = Phase::ended; }

std::vector<GroupCreation::Outcome> GroupCreation::advance() {
  for (const Participant& participant : participants_) {
    if (participant.phase == Phase::exchange) {
      addresses_[participant.group_rank] = participant.group_size;
      sizes_.insert(participant.group_size);
    }
  }
  std::vector<Outcome> outcomes;
  for (std::size_t rank = 0; rank < participants_.size(); ++rank) {
    if (participants_[rank].phase == Phase::exchange) {
      if (std::optional<Outcome> failure = connect(static_cast<Rank>(rank), participants_[rank])) {
        outcomes.push_back(*failure);
      }
    }
  }
  for (std::size_t rank = 0;
       rank < participants_.size() && counted_in_ == static_cast<Rank>(participants_.size()); ++rank) {
    if (participants_[rank].phase == Phase::barrier) {
      participants_[rank].phase = Phase::ended;
      ++through_;
      outcomes.push_back({static_cast<Rank>(rank), {}});
    }
  }
  std::ranges::stable_sort(outcomes, {}, &Outcome::rank);
  return outcomes;
}

// True when all addresses are there and fit, which is known without looking at each.
bool GroupCreation::knows_everybody(const Participant& participant) const {
  return sizes_.size() == 1 && addresses_.size() == participant.group_size;
}

// Takes the addresses of the others, in order, as far as they are there. A rank leaves one for every other
// member that it knows of; who knows of more or fewer cuts them wrongly.
std::optional<GroupCreation::Outcome> GroupCreation::connect(Rank rank, Participant& participant) {
  if (sizes_.size() == 1 && addresses_.size() < participant.group_size) {
    return std::nullopt;  // and so far all of them fit
  }
  const std::size_t others = participant.group_size - 1;
  for (Rank peer = 0; peer < static_cast<Rank>(participant.group_size) && !knows_everybody(participant);
       ++peer) {
    if (peer == participant.group_rank) {
      continue;
    }
    const auto found = addresses_.find(peer);
    if (found == addresses_.end()) {
      return std::nullopt;
    }
    const std::size_t bytes = address_bytes * (found->second - 1) / others;
    if (bytes != address_bytes) {
      participant.phase = Phase::ended;
      return Outcome{rank,
                     fmt::format("[enforce fail at ./gloo/transport/tcp/address.cc:45] sizeof(impl_) == "
                                 "bytes.size(). {} vs {}",
                                 address_bytes, bytes)};
    }
  }
  participant.phase = Phase::barrier;
  ++counted_in_;
  return std::nullopt;
}

std::string GroupCreation::timeout_text(Rank rank, Duration timeout) const {
  if (participants_[static_cast<std::size_t>(rank)].phase == Phase::exchange) {
    return "Wait timeout";
  }
  return store_barrier_timeout_text(rank, number_, static_cast<Rank>(participants_.size()), counted_in_,
                                    timeout);
}

}  // namespace rollcall::sim
