#pragma once

// Deaths: when ranks die because the scenario says so. A rank dies at its time, whatever it is doing then.

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "sim/base/expects.h"
#include "sim/engine/simulate.h"

namespace rollcall::sim {

class Deaths {
 public:
  // The deaths of the crashes in `options`.
  explicit Deaths(const Options& options);

  bool none() const { return at_.empty(); }
  // When the rank dies; `never` if it does not.
  Time of(Rank rank) const { return at_.empty() ? never : at_[static_cast<std::size_t>(rank)]; }

  // The time of the first death that `pop` has not taken yet; `never` if none is left.
  Time next() const { return left_.empty() ? never : left_.back().first; }
  Rank pop();

 private:
  std::vector<Time> at_;                     // by rank; empty if no rank is to die
  std::vector<std::pair<Time, Rank>> left_;  // the last first
};

inline Deaths::Deaths(const Options& options) {
  if (options.crashes.empty()) {
    return;
  }
  if (options.decisions != nullptr) {
    options.decisions->looked_at_clock();
  }
  at_.assign(static_cast<std::size_t>(options.world_size), never);
  for (const Crash& crash : options.crashes) {
    for (const Rank rank : crash.ranks.to_vector()) {
      Time& at = at_[static_cast<std::size_t>(rank)];
      at = std::min(at, crash.at);
    }
  }
  for (Rank rank = 0; rank < options.world_size; ++rank) {
    if (of(rank) != never) {
      left_.emplace_back(of(rank), rank);
    }
  }
  std::ranges::sort(left_, std::greater());
}

inline Rank Deaths::pop() {
  expects(!left_.empty(), "somebody is left to die");
  const Rank rank = left_.back().second;
  left_.pop_back();
  return rank;
}

}  // namespace rollcall::sim
