#pragma once

// Tally: the outcomes of a search's schedules, each kind once, with the first schedule that has it.

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/explore/schedule.h"
#include "sim/report/report.h"

namespace rollcall::sim {

// Runs with the same outcome: verdict, kind and place agree.
struct Ending {
  std::string verdict;
  FindingKind kind = FindingKind::ok;
  std::string place;  // "all_reduce on world #5"; may be empty
  std::int64_t count = 0;
  // Of the first of them:
  std::uint64_t number = 0;  // in order of the search
  Schedule schedule{};
  RankSet deciders{};
  Report report{};

  bool is_ok() const { return kind == FindingKind::ok; }
  bool is_like(const Ending& other) const {
    return verdict == other.verdict && kind == other.kind && place == other.place;
  }
};

class Tally {
 public:
  // `number`: the run's place in the order of the search; each run is counted once.
  void count(std::uint64_t number, const Schedule& schedule, const RankSet& deciders, std::uint64_t space,
             Report report);
  // Counts a run that reached a state of an earlier run and was cut.
  void count_cut() { ++cut_; }
  void merge(Tally other);
  // What is counted from now on belongs to another search, whose schedules are others.
  void end_search();

  std::int64_t schedules() const { return schedules_; }
  std::int64_t cut() const { return cut_; }
  std::int64_t distinct() const { return ended_distinct_ + static_cast<std::int64_t>(seen_.size()); }
  // The estimated number of schedules: the mean over runs of the product of their ways (Knuth, "Estimating the
  // efficiency of backtrack programs", 1975), summed over searches. Calls whose order does not matter count here. At
  // least as many as were seen, and 1.
  double space() const;
  // Ordered by the first run of each.
  const std::vector<Ending>& endings() const { return endings_; }
  // The first that is not ok; null if there is none.
  const Ending* first_failure() const;
  // By verdict and kind.
  std::vector<Outcome> outcomes() const;

 private:
  std::vector<Ending>::iterator find_like(const Ending& ending);
  Ending& entry_for(Ending ending);

  std::vector<Ending> endings_;
  std::unordered_set<std::uint64_t> seen_;  // hashes of this search's schedules; only counted, never iterated
  std::int64_t schedules_ = 0;
  std::int64_t cut_ = 0;
  double space_sum_ = 0;  // of this search
  // Of the searches before:
  double ended_space_ = 0;
  std::int64_t ended_schedules_ = 0;
  std::int64_t ended_distinct_ = 0;
};

}  // namespace rollcall::sim
