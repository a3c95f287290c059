#pragma once

// Store: a rank's end of the hub's stores (hub.h), like torch's Store: names and values that all ranks of a run
// see. There are two: the ranks' own, in which they find each other, and the store of the program that they run.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "real/process/process.h"
#include "sim/c10d/host_calls.h"

namespace rollcall::real {

class Store {
 public:
  // `hub`: a connection to it.
  explicit Store(Descriptor hub) : hub_(std::move(hub)) {}

  // In the ranks' own store. get blocks until a rank has set the key, and throws LostPeerError if none has
  // after `timeout`.
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key, std::optional<Duration> timeout = std::nullopt);
  bool has(const std::string& key);

  // A call of the program on its store. Throws LostPeerError for a timeout, ValueError for a wrong call.
  StoreReply call(const StoreCall& call, const TorchTraits& torch);

  // All of these throw std::runtime_error if the hub is gone. Call from one thread at a time.

 private:
  // Of the ranks' own store.
  StoreReply ask_ranks(const StoreCall& call);
  // Empty if the keys are not set in time.
  std::optional<StoreReply> ask(std::string_view store, const StoreCall& call);

  Descriptor hub_;
};

// The hub's names for the two.
inline constexpr std::string_view ranks_store = "ranks";
inline constexpr std::string_view program_store = "program";

}  // namespace rollcall::real
