#pragma once

// StateTable: the states that a search has been in, and the calls that followed each. Two runs that have reached equal
// states continue alike, so only one of them has to continue.
//
// It compares bytes, not hashes: a search that claims to be exhaustive has to be right. All that a rank has learned is
// one number: that of its last lesson together with the number of all previous ones, as in a tree. So a state has a few
// numbers per rank.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/engine/decisions.h"

namespace rollcall::sim {

class StateTable {
 public:
  using StateId = std::uint32_t;
  using CallId = std::uint32_t;
  using Calls = std::set<CallId>;

  // A run begins.
  void begin() { learned_.clear(); }
  // As in Decisions.
  void learned(Rank rank, std::string_view what);
  void holds(Rank rank, std::string_view state);

  struct Found {
    StateId id;
    bool is_new;
  };
  // The state of the current run. `held`: its state apart from what ranks have learned.
  Found find(std::string_view held);

  // Sets all calls that go ahead somewhere behind a state, or are kept from doing so, once all of that has been seen.
  void finish(StateId id, Calls calls);
  const std::optional<Calls>& behind(StateId id) const { return behind_[id]; }
  CallId id_of(const Contender& call);
  const Contender& call(CallId id) const { return calls_[id]; }

  // The approximate size of everything that it keeps.
  std::size_t bytes() const { return bytes_; }

 private:
  std::uint32_t number_of(std::string text);

  std::vector<std::uint32_t> learned_;                      // by rank, in the current run
  std::unordered_map<std::string, std::uint32_t> numbers_;  // only for lookups, never iterated
  std::unordered_map<std::string, StateId> states_;         // likewise
  std::vector<std::optional<Calls>> behind_;                // by state; null: not yet known
  std::unordered_map<std::string, CallId> call_ids_;        // likewise
  std::vector<Contender> calls_;
  std::size_t bytes_ = 0;
};

}  // namespace rollcall::sim
