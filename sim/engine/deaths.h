#pragma once

// Deaths: when ranks die because the scenario says so. A rank dies at a time, whatever it does then.

#include <utility>
#include <vector>

#include "sim/engine/simulate.h"

namespace rollcall::sim {

class Deaths {
 public:
  // Of the crashes that `options` has.
  explicit Deaths(const Options& options);

  bool none() const { return at_.empty(); }
  // When the rank dies.
  Time of(Rank rank) const { return at_.empty() ? never : at_[static_cast<std::size_t>(rank)]; }

  // The first that `pop` has not taken yet.
  Time next() const { return left_.empty() ? never : left_.back().first; }
  Rank pop();

 private:
  std::vector<Time> at_;                     // by rank; empty while nobody is to die
  std::vector<std::pair<Time, Rank>> left_;  // the last first
};

}  // namespace rollcall::sim
