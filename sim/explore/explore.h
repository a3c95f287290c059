#pragma once

// sim::explore: run a program under many schedules, all of them if that is possible, and report their outcomes.
//
//   const Report report = sim::explore({.world_size = 4}, train, {.schedules = 1000});
//
// docs/exploration.md says what can differ between schedules, and why that is all.

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/explore/schedules.h"
#include "sim/explore/search_tree.h"
#include "sim/explore/tally.h"

namespace rollcall::sim {

enum class Scheduler {
  automatic,  // depth first for one half of the schedules; random for the rest if that was not all
  dfs,        // depth first, with reduction: all there are, if they are few enough
  random,     // every way is as likely as any other
  pct,        // priorities: good at orders that few changes lead to
};

// "this is part 2 of 4": the bound of a shard, and the shard of a bound; nothing for other bounds.
std::string to_bound(const Slice& shard);
std::optional<Slice> shard_of_bound(const std::string& bound);

struct ExploreOptions {
  std::int64_t schedules = 10'000;
  Scheduler scheduler = Scheduler::automatic;
  std::optional<std::size_t> deviations_max{};  // of one run, from the usual way
  bool reduces = true;
  int jobs = 1;   // threads
  Slice shard{};  // which of several machines this is
  std::uint64_t seed = 0;
  // Called now and then, from any thread. `all`: how many schedules there seem to be; 0 while that is open.
  std::function<void(std::int64_t done, std::int64_t all)> progress{};
  const volatile std::sig_atomic_t* interrupted = nullptr;  // ends the search early; borrowed
};

struct Exploration {
  Tally tally;
  bool exhaustive = false;
  std::vector<std::string> bounds;  // why it is not: one sentence each
  bool interrupted = false;
  // Some rank takes a way by timing (`choice`, `parallel`); otherwise only calls race.
  bool ranks_decide = false;
};

// Throws what `run` throws. With several jobs, it is called on several threads at once.
Exploration explore(const RunSchedule& run, const ExploreOptions& options);

// The same for a program in C++, as a report: of the first schedule that fails, or of the usual one if none does. Says
// how a failure is repeated by its schedule's text (sim/explore/schedule.h).
Report explore(const Options& options, const Program& program, const ExploreOptions& search = {});

}  // namespace rollcall::sim
