#pragma once

// StoreService: the run's store, and the ranks that wait for it. A rank with a request parks until all ranks are at
// rest, and requests are then served in rank order: the order in which ranks ran cannot decide which one sets a key
// first.

#include <map>
#include <optional>
#include <vector>

#include "sim/c10d/store_state.h"
#include "sim/engine/run.h"

namespace rollcall::sim {

// A call on the store. It is on the stack of its parked rank.
struct StoreRequest {
  const StoreCall& call;
  Time since = 0;
  std::uint64_t number = 0;  // of its rank's requests
  StoreReply reply{};
  std::optional<Error> error{};
};

class StoreService {
 public:
  // `run` is borrowed.
  explicit StoreService(Run& run) : run_(run), state_(run.options.store) {}

  // The rank is about to park. The request and its call stay the rank's own until it is served or gives up.
  void ask(Rank rank, StoreRequest& request);
  void give_up(Rank rank);

  // Serves all requests that can be served, repeatedly: a key that one rank sets may be what another waits for.
  void serve_all();

  // For deciding which request is first: those that are not served yet, by rank.
  const std::map<Rank, StoreRequest*>& requests() const { return requests_; }
  // False if the rank has to wait; notes the keys that it waits for then.
  bool is_servable(Rank rank, const StoreCall& call);
  // Serves a request that is servable.
  void serve_one(Rank rank);

  std::int64_t bytes() const { return state_.bytes(); }
  // For comparing states.
  const std::map<std::string, std::string>& values() const { return state_.values(); }
  std::uint64_t requests_of(Rank rank) const {
    return requested_.empty() ? 0 : requested_[static_cast<std::size_t>(rank)];
  }

 private:
  bool serve(Rank rank, StoreRequest& request);

  Run& run_;
  StoreState state_;
  bool moved_ = false;  // there is something new to serve
  std::map<Rank, StoreRequest*> requests_;
  std::vector<std::uint64_t> requested_;  // by rank: how many requests it has made; empty before the first
};

}  // namespace rollcall::sim
