#pragma once

// Decisions drawn at random from a seed: fixed integer arithmetic, the same on every machine.

#include <map>
#include <optional>
#include <vector>

#include "sim/explore/decision_log.h"

namespace rollcall::sim {

// The seed of the `index`-th run that is derived from `seed`.
std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t index);

// Every way is equally likely. With `deviations_max`, about that many decisions leave the usual way, and never more.
class RandomDecisions final : public DecisionLog {
 public:
  using DecisionLog::DecisionLog;

  // `expected`: how many decisions the run is likely to have.
  void begin(std::uint64_t seed, std::optional<std::size_t> deviations_max, std::size_t expected);

 protected:
  std::size_t choose(const Decision& decision) override;

 private:
  std::uint64_t state_ = 0;
  std::optional<std::size_t> left_;
  std::size_t expected_ = 1;
};

// Ranks have random priorities, and of several calls the one with the highest priority goes ahead; `changes` times, at
// random places, the one that would be next drops to the lowest priority. Probabilistic concurrency testing (Burckhardt
// et al., "A randomized scheduler with probabilistic guarantees of finding bugs", 2010). For a decision of a single
// rank, every way is equally likely.
class PriorityDecisions final : public DecisionLog {
 public:
  using DecisionLog::DecisionLog;

  // `changes`: a few if it is null.
  void begin(std::uint64_t seed, std::optional<std::size_t> changes, std::size_t expected);

 protected:
  std::size_t choose(const Decision& decision) override;

 private:
  std::size_t highest(const Decision& decision);
  std::uint64_t& priority_of(const Contender& call);

  std::uint64_t state_ = 0;
  std::map<std::pair<Rank, std::pair<Rank, GroupId>>, std::uint64_t>
      priorities_;  // by rank, source and group
  std::uint64_t lowest_ = 0;
  std::vector<std::size_t> change_at_;  // indexes of orders, ascending
  std::size_t orders_ = 0;
};

}  // namespace rollcall::sim
