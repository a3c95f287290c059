#include "sim/engine/group_creation.h"

#include <algorithm>
#include <ranges>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/c10d/barrier_texts.h"

namespace rollcall::sim {
namespace {

constexpr std::size_t address_bytes = 136;  // of one pair (gloo/transport/tcp/address.h)

}  // namespace

GroupCreation::GroupCreation(std::int64_t number, Rank world_size, Rules rules)
    : number_(number), rules_(rules), participants_(static_cast<std::size_t>(world_size)) {}

bool GroupCreation::enter(Rank rank, const RankList& ranks) {
  Participant& participant = participants_[static_cast<std::size_t>(rank)];
  expects(participant.phase == Phase::absent, "a rank enters a new_group once");
  const auto found = std::ranges::lower_bound(ranks, rank);
  if (found != ranks.end() && *found == rank && rules_.rendezvous) {
    participant = {.phase = Phase::exchange,
                   .group_rank = static_cast<Rank>(found - ranks.begin()),
                   .group_size = ranks.size()};
    addresses_.insert_or_assign(participant.group_rank, Address{ranks.size(), rank});
    sizes_.insert(ranks.size());
    return true;
  }
  return !leave_exchange(participant);
}

void GroupCreation::give_up(Rank rank) {
  Participant& participant = participants_[static_cast<std::size_t>(rank)];
  lost_ =
      lost_ || (participant.phase != Phase::barrier && rules_.rendezvous != GlooRendezvous::address_per_pair);
  participant.phase = Phase::ended;
}

std::vector<GroupCreation::Outcome> GroupCreation::advance() {
  std::vector<Outcome> outcomes;
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t rank = 0; rank < participants_.size(); ++rank) {
      Participant& participant = participants_[rank];
      if (participant.phase == Phase::exchange || participant.phase == Phase::connect) {
        moves = go_on(static_cast<Rank>(rank), participant, outcomes) || moves;
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

// True if all addresses are there and have the right length, which is known without checking each.
bool GroupCreation::everybody_is_there(const Participant& participant) const {
  return !lost_ && sizes_.size() == 1 && addresses_.size() == participant.group_size;
}

// True if that may let other ranks advance.
bool GroupCreation::go_on(Rank rank, Participant& participant, std::vector<Outcome>& outcomes) {
  const auto leave = [&] {
    if (leave_exchange(participant)) {
      outcomes.push_back({rank, {}});
    }
  };
  if (everybody_is_there(participant)) {
    leave();
    return false;
  }
  if (!lost_ && sizes_.size() == 1 && rules_.rendezvous != GlooRendezvous::one_by_one) {
    return false;  // some are missing, and so far all have the right length
  }
  if (rules_.rendezvous == GlooRendezvous::address_per_pair) {
    const std::optional<std::string> error = read_addresses(participant);
    if (error && error->empty()) {
      leave();
    } else if (error) {
      participant.phase = Phase::ended;
      outcomes.push_back({rank, *error});
    }
    return false;
  }
  const Rank before = participant.at;
  const Phase phase = participant.phase;
  if (connect(participant)) {
    leave();
    participant.at = static_cast<Rank>(participant.group_size);
    return true;
  }
  return participant.at != before || participant.phase != phase;
}

// True if the rank is through; false if it waits for all ranks.
bool GroupCreation::leave_exchange(Participant& participant) {
  if (rules_.waits_for_all) {
    participant.phase = Phase::barrier;
    ++counted_in_;
    return false;
  }
  participant.phase = Phase::ended;
  ++through_;
  return true;
}

// Reads the addresses of the others, in order, as far as they are there. A rank leaves one for every other
// member that it knows about; a rank that knows about more or fewer members splits them wrongly. Returns the error;
// empty if all addresses are there and valid; null while one is missing.
std::optional<std::string> GroupCreation::read_addresses(Participant& participant) const {
  const std::size_t others = participant.group_size - 1;
  for (Rank peer = 0; peer < static_cast<Rank>(participant.group_size); ++peer) {
    if (peer == participant.group_rank) {
      continue;
    }
    const auto found = addresses_.find(peer);
    if (found == addresses_.end()) {
      return std::nullopt;
    }
    const std::size_t bytes = address_bytes * (found->second.group_size - 1) / others;
    if (bytes != address_bytes) {
      return fmt::format(
          "[enforce fail at ./gloo/transport/tcp/address.cc:45] sizeof(impl_) == bytes.size(). {} vs {}",
          address_bytes, bytes);
    }
  }
  return std::string();
}

// Advances from peer to peer. True if the rank is connected with all.
bool GroupCreation::connect(Participant& participant) {
  const auto size = static_cast<Rank>(participant.group_size);
  const auto is_missing = [&](Rank peer) {
    return peer != participant.group_rank && !addresses_.contains(peer);
  };
  if (rules_.rendezvous == GlooRendezvous::all_then_connect && participant.phase == Phase::exchange &&
      std::ranges::any_of(std::views::iota(Rank{0}, size), is_missing)) {
    return false;
  }
  for (; participant.at < size; ++participant.at) {
    participant.phase = is_missing(participant.at) ? Phase::exchange : Phase::connect;
    const bool is_itself = participant.at == participant.group_rank;
    if (participant.phase == Phase::exchange ||
        (!is_itself && !has_turned_to(addresses_.at(participant.at), participant.group_rank))) {
      return false;
    }
  }
  return true;
}

// True if the peer has started to connect to this rank. Both sides have to: which of them only listens is chance.
bool GroupCreation::has_turned_to(const Address& peer, Rank group_rank) const {
  const Participant& other = participants_[static_cast<std::size_t>(peer.owner)];
  const bool is_listed = static_cast<std::size_t>(group_rank) < peer.group_size;
  return is_listed && (other.at > group_rank || (other.at == group_rank && other.phase == Phase::connect));
}

std::optional<std::string> GroupCreation::timeout_text(Rank rank, Duration timeout) const {
  switch (participants_[static_cast<std::size_t>(rank)].phase) {
    case Phase::exchange:
      return "Wait timeout";
    case Phase::connect:
      return std::nullopt;
    default:
      return store_barrier_timeout_text(rank, number_, static_cast<Rank>(participants_.size()), counted_in_,
                                        timeout);
  }
}

}  // namespace rollcall::sim
