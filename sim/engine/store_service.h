#pragma once

// StoreService: the run's store, and who waits for it. A rank that asks parks until every rank has come to rest, and
// is served then, in rank order: the order in which ranks ran cannot decide who sets a key first.

#include <map>
#include <optional>
#include <vector>

#include "sim/c10d/store_state.h"
#include "sim/engine/run.h"

namespace rollcall::sim {

// A call on the store. Its rank is parked, and this lies on its stack.
struct StoreRequest {
  const StoreCall* call = nullptr;
  Time since = 0;
  std::uint64_t number = 0;  // of its rank's requests
  StoreReply reply{};
  std::optional<Error> error{};
};

class StoreService {
 public:
  // `run` is borrowed.
  explicit StoreService(Run& run) : run_(run) {}

  // The rank is about to park. `call` and the answer stay its own until it is served or gives up.
  StoreRequest ask(Rank rank, const StoreCall& call);
  void post(Rank rank, StoreRequest& request);
  void give_up(Rank rank);

  // Serves all that can be served, until nobody gets any further: what one rank sets another may have waited for.
  void serve_all();

  // For who decides which request is first. Not served yet, by rank.
  const std::map<Rank, StoreRequest*>& requests() const { return requests_; }
  // False when the rank has to wait, and then notes for what.
  bool is_servable(Rank rank, const StoreCall& call);
  // One that is servable.
  void serve_one(Rank rank);

  std::int64_t bytes() const { return state_.bytes(); }
  // For those who compare states.
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
  std::vector<std::uint64_t> requested_;  // by rank: how often it has asked; empty while nobody has
};

}  // namespace rollcall::sim
