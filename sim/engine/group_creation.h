#pragma once

// How the ranks of a world come through one new_group (torch/distributed/distributed_c10d.py). Pure: no fibers
// and no time.
//
// Members of a Gloo group first exchange addresses through the store (gloo/rendezvous/context.cc,
// connectFullMesh): each leaves its own under its rank inside the group and waits for those of the others. Then
// all ranks of the world, members or not, count themselves in at the store and wait until everybody has. NCCL
// makes its communicator later, so that only the second part is left.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/c10d/host_calls.h"

namespace rollcall::sim {

class GroupCreation {
 public:
  // Of the `number`-th new_group, from 0.
  GroupCreation(std::int64_t number, Rank world_size, bool exchanges_addresses);

  // A rank calls, with its idea of the members. Once per rank.
  void enter(Rank rank, const RankList& ranks);
  // Takes back a rank whose patience is over. What it left in the store stays there.
  void give_up(Rank rank);

  // How a rank ended: without a text it is through.
  struct Outcome {
    Rank rank = 0;
    std::string error;
  };
  // Lets every rank go as far as it can; those that ended, by rank.
  std::vector<Outcome> advance();

  // True when every rank is through.
  bool is_complete() const { return through_ == static_cast<Rank>(participants_.size()); }

  // What a rank raises that has waited for `timeout`.
  std::string timeout_text(Rank rank, Duration timeout) const;

 private:
  enum class Phase : std::uint8_t { absent, exchange, barrier, ended };

  struct Participant {
    Phase phase = Phase::absent;
    Rank group_rank = -1;
    std::size_t group_size = 0;
  };

  bool knows_everybody(const Participant& participant) const;
  std::optional<Outcome> connect(Rank rank, Participant& participant);

  std::int64_t number_;
  bool exchanges_addresses_;
  std::vector<Participant> participants_;  // by rank
  std::map<Rank, std::size_t> addresses_;  // by rank inside the group: the size of the group it is meant for
  std::set<std::size_t> sizes_;            // those of addresses_
  Rank counted_in_ = 0;
  Rank through_ = 0;
};

}  // namespace rollcall::sim
