#pragma once

// Finds ranks that do the same work. Collectives do not distinguish roles, but messages do: the stages of a pipeline
// make different calls, and each should be compared with the same stage of another pipeline.

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

class Roles {
 public:
  explicit Roles(const Report& report);

  // Returns the ranks of `ranks` that can be compared with the culprits: all, if messages do not distinguish them.
  // Otherwise the ranks of the world that have a culprit's role; empty if no other rank has it.
  RankSet comparable(const RankSet& ranks, const RankSet& culprits) const;

  // Identifies the partner of a message, in a way that is the same for all ranks of a role.
  std::int64_t partner(const Span& span) const;

 private:
  // The positions of the ranks that a rank sends to, and of those that it receives from.
  using Peers = std::pair<std::set<std::size_t>, std::set<std::size_t>>;
  // A rank's position among those that it exchanges messages with, directly or through others, and their number. In
  // a ring, all positions are the same, and so are those of ranks with the same partners, such as the workers of one
  // server.
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
