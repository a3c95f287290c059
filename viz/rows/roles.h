#pragma once

// Which ranks do the same work. Collectives make no difference, but messages do: the stages of a pipeline call
// different things, and each is to be compared with the same stage of another pipeline.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

class Roles {
 public:
  explicit Roles(const Report& report);

  // Of `ranks`, those that can be compared with the culprits: all, where no messages tell them apart. Otherwise the
  // ranks of the world that have a culprit's role; none where nobody else has it.
  RankSet comparable(const RankSet& ranks, const RankSet& culprits) const;

  // Whom a message is exchanged with, in a way that is the same for all ranks of a role.
  std::int64_t partner(const Span& span) const;

 private:
  // Positions of those that a rank sends to, and receives from.
  using Peers = std::pair<std::set<std::size_t>, std::set<std::size_t>>;
  // Where a rank stands among those that it exchanges messages with, directly or over others, and how many they are. In
  // a ring all places are one, and so are those of ranks with the same partners, as the workers of one server are.
  using Role = std::pair<std::size_t, std::size_t>;

  void find_parties(const Report& report);
  void find_peers(const Report& report);
  void find_roles();
  bool is_ring(const std::vector<Rank>& members) const;
  std::size_t position(Rank rank) const;
  const std::vector<Rank>& members(Rank rank) const {
    return parties_[party_[static_cast<std::size_t>(rank)]];
  }
  const Role& role(Rank rank) const { return roles_[static_cast<std::size_t>(rank)]; }

  std::vector<std::vector<Rank>> parties_;  // each ascending
  std::vector<bool> rings_;                 // by party
  std::vector<std::size_t> party_;          // the rest by rank
  std::vector<Peers> peers_;
  std::vector<Role> roles_;
  std::vector<bool> shares_partners_;
};

}  // namespace rollcall::viz
