#pragma once

// sim::explore: run a program under many schedules, all of them if that is possible, and report their outcomes.
//
//   const Exploration found = sim::explore(
//       [&](Decisions& decisions) { return sim::run({.world_size = 4, .decisions = &decisions}, train); }, {});
//
// docs/exploration.md says what can differ between schedules, and why that is all.

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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
  std::function<void(std::int64_t done)> progress{};        // called now and then, from any thread
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

// Runs the program once. With several jobs, on several threads at once.
using RunSchedule = std::function<Report(Decisions& decisions)>;

// Throws what `run` throws.
Exploration explore(const RunSchedule& run, const ExploreOptions& options);

}  // namespace rollcall::sim
