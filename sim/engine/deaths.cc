#include "sim/engine/deaths.h"

#include <algorithm>
#include <functional>

#include "sim/base/expects.h"

namespace rollcall::sim {

Deaths::Deaths(const Options& options) {
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

Rank Deaths::pop() {
  expects(!left_.empty(), "somebody is left to die");
  const Rank rank = left_.back().second;
  left_.pop_back();
  return rank;
}

}  // namespace rollcall::sim
