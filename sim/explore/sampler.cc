#include "sim/explore/sampler.h"

#include <algorithm>
#include <limits>

#include "sim/base/split_mix.h"

namespace rollcall::sim {
namespace {

constexpr std::uint64_t lowest_priority = std::numeric_limits<std::uint64_t>::max() / 2;

}  // namespace

std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t index) { return mixed(mixed(seed) + index); }

void RandomDecisions::begin(std::uint64_t seed, std::optional<std::size_t> deviations_max,
                            std::size_t expected) {
  DecisionLog::begin();
  state_ = seed;
  left_ = deviations_max;
  expected_ = std::max<std::size_t>(expected, 1);
}

std::size_t RandomDecisions::choose(const Decision& decision) {
  if (decision.ways <= 1) {
    return 0;
  }
  if (!left_) {
    return draw(state_) % decision.ways;
  }
  // Of the decisions that are left, as many deviate as are allowed.
  const std::size_t made = schedule().decisions;
  const std::size_t remaining = expected_ > made ? expected_ - made : 1;
  if (*left_ == 0 || draw(state_) % remaining >= *left_) {
    return 0;
  }
  --*left_;
  return 1 + draw(state_) % (decision.ways - 1);
}

void PriorityDecisions::begin(std::uint64_t seed, std::optional<std::size_t> changes, std::size_t expected) {
  constexpr std::size_t usual_changes = 2;
  DecisionLog::begin();
  state_ = seed;
  priorities_.clear();
  lowest_ = lowest_priority;
  orders_ = 0;
  change_at_.clear();
  for (std::size_t i = 0; i < changes.value_or(usual_changes); ++i) {
    change_at_.push_back(draw(state_) % std::max<std::size_t>(expected, 1));
  }
  std::ranges::sort(change_at_);
}

std::uint64_t& PriorityDecisions::priority_of(const Contender& call) {
  const auto [entry, is_new] = priorities_.try_emplace({call.rank, {call.source, call.group}});
  if (is_new) {
    entry->second = lowest_priority + 1 + draw(state_) / 2;
  }
  return entry->second;
}

std::size_t PriorityDecisions::highest(const Decision& decision) {
  std::size_t best = 0;
  for (std::size_t way = 1; way < decision.ways; ++way) {
    if (priority_of(decision.contenders[way]) > priority_of(decision.contenders[best])) {
      best = way;
    }
  }
  return best;
}

std::size_t PriorityDecisions::choose(const Decision& decision) {
  if (decision.ways <= 1) {
    return 0;
  }
  if (decision.kind != Decision::Kind::order) {
    return draw(state_) % decision.ways;
  }
  const std::size_t now = orders_++;
  while (!change_at_.empty() && change_at_.front() <= now) {
    change_at_.erase(change_at_.begin());
    priority_of(decision.contenders[highest(decision)]) = --lowest_;
  }
  return highest(decision);
}

}  // namespace rollcall::sim
