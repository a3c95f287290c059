#pragma once

// StateTable: the states that a search has been in, and what each has led to. Two runs that have come to equal states
// go on alike, so that only one of them has to.
//
// Compared are bytes, not hashes of them: a search that says "that is all" has to mean it. What a rank has learned is
// one number, of a tree: its last lesson, after the number of all before. So a state has a few numbers per rank.

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
  // As Decisions has them.
  void learned(Rank rank, std::string_view what);
  void holds(Rank rank, std::string_view state);

  struct Found {
    StateId id;
    bool is_new;
  };
  // The state of the current run. `held`: what it holds besides what ranks have learned.
  Found find(std::string_view held);

  // All calls that go ahead somewhere behind a state, or are kept from it, once all of that has been seen.
  void finish(StateId id, Calls calls);
  const std::optional<Calls>& behind(StateId id) const { return behind_[id]; }
  CallId id_of(const Contender& call);
  const Contender& call(CallId id) const { return calls_[id]; }

  // Of what it keeps, about.
  std::size_t bytes() const { return bytes_; }

 private:
  std::uint32_t number_of(std::string text);

  std::vector<std::uint32_t> learned_;                      // by rank, in the current run
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up, never iterated
  std::unordered_map<std::string, StateId> states_;         // likewise
  std::vector<std::optional<Calls>> behind_;                // by state; none: not yet
  std::unordered_map<std::string, CallId> call_ids_;        // likewise
  std::vector<Contender> calls_;
  std::size_t bytes_ = 0;
};

}  // namespace rollcall::sim
