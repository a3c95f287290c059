#pragma once

// Decisions drawn at random, from a seed: fixed integer arithmetic, the same on every machine.

#include <map>
#include <optional>
#include <vector>

#include "sim/explore/decision_log.h"

namespace rollcall::sim {

// The seed of the `index`-th run that is derived from `seed`.
std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t index);

// Every way is as likely as any other. With `deviations_max`, about so many decisions leave the usual way, and never
// more.
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

// Ranks have priorities, drawn at random, and of several calls that of the highest goes ahead; `changes` times, at
// random places, the one that would be next falls to the lowest. Probabilistic concurrency testing (Burckhardt et al.,
// "A randomized scheduler with probabilistic guarantees of finding bugs", 2010). Where only one rank decides, every
// way is as likely as any other.
class PriorityDecisions final : public DecisionLog {
 public:
  using DecisionLog::DecisionLog;

  void begin(std::uint64_t seed, std::size_t changes, std::size_t expected);

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
