#pragma once

// How the ranks of a world get through one new_group (torch/distributed/distributed_c10d.py). Pure: no fibers
// and no time.
//
// Members of a Gloo group first find each other through the store (GlooRendezvous): each writes its address to the
// store under its rank in the group, waits for the others' addresses, and connects. In releases in which no rank may
// leave before all have arrived, all ranks of the world, members or not, then count themselves in at the store and wait
// for the others. NCCL makes its communicator later, so at most this second part remains.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/c10d/host_calls.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim {

class GroupCreation {
 public:
  struct Rules {
    std::optional<GlooRendezvous> rendezvous{};  // null: members do not connect to each other
    bool waits_for_all = false;
  };

  // For the `number`-th new_group, from 0.
  GroupCreation(std::int64_t number, Rank world_size, Rules rules);

  // A rank calls, with its own list of members. Once per rank. Returns false if the call is done at once, because it
  // does not wait for any rank.
  bool enter(Rank rank, const RankList& ranks);
  // Withdraws a rank that has timed out. What it left in the store stays there.
  void give_up(Rank rank);

  // How the call of a rank ended: it has completed if `error` is empty.
  struct Outcome {
    Rank rank = 0;
    std::string error;
  };
  // Advances every rank as far as possible. Returns the ranks whose calls ended, by rank.
  std::vector<Outcome> advance();

  // True if the calls of all ranks have completed.
  bool is_complete() const { return through_ == static_cast<Rank>(participants_.size()); }

  // The error of a rank that has waited for `timeout`. Null where Gloo waits without a limit: for a peer that
  // listens and never connects.
  std::optional<std::string> timeout_text(Rank rank, Duration timeout) const;

 private:
  enum class Phase : std::uint8_t { absent, exchange, connect, barrier, ended };

  struct Participant {
    Phase phase = Phase::absent;
    Rank group_rank = -1;
    Rank at = 0;  // the peer whose turn it is
    std::size_t group_size = 0;
  };
  struct Address {
    std::size_t group_size = 0;  // of the group that the owner means
    Rank owner = 0;
  };

  bool everybody_is_there(const Participant& participant) const;
  bool go_on(Rank rank, Participant& participant, std::vector<Outcome>& outcomes);
  std::optional<std::string> read_addresses(Participant& participant) const;
  bool connect(Participant& participant);
  bool has_turned_to(const Address& peer, Rank group_rank) const;
  bool leave_exchange(Participant& participant);

  std::int64_t number_;
  Rules rules_;
  std::vector<Participant> participants_;  // by rank
  std::map<Rank, Address> addresses_;      // in the store, by rank inside the group
  std::set<std::size_t> sizes_;            // those of addresses_
  bool lost_ = false;                      // a rank has given up before it was connected
  Rank counted_in_ = 0;
  Rank through_ = 0;
};

}  // namespace rollcall::sim
