#pragma once

// sim::explore: runs a program under many schedules, all of them if possible, and reports their outcomes.
//
//   const Report report = sim::explore({.world_size = 4}, train, {.schedules = 1000});
//
// docs/exploration.md says what can differ between schedules, and why nothing else can.

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
  automatic,  // depth first for half of the schedules; random for the rest if there are more
  dfs,        // depth first, with reduction: all schedules, if they are few enough
  random,     // every way is equally likely
  pct,        // priorities: good at finding orders that take few changes
};

// "this is part 2 of 4": the bound of a shard, and the shard of a bound; null for other bounds.
std::string to_bound(const Slice& shard);
std::optional<Slice> shard_of_bound(const std::string& bound);

struct ExploreOptions {
  std::int64_t schedules = 10'000;
  Scheduler scheduler = Scheduler::automatic;
  std::optional<std::size_t> deviations_max{};  // from the usual way, in one run
  bool reduces = true;
  int jobs = 1;   // threads
  Slice shard{};  // which of several machines this is
  std::uint64_t seed = 0;
  // Called now and then, from any thread. `all`: the estimated number of schedules; 0 while unknown.
  std::function<void(std::int64_t done, std::int64_t all)> progress{};
  const volatile std::sig_atomic_t* interrupted = nullptr;  // ends the search early; borrowed
};

struct Exploration {
  Tally tally;
  bool exhaustive = false;
  std::vector<std::string> bounds;  // why it is not exhaustive: one sentence each
  bool interrupted = false;
  // True if some rank takes a way by timing (`choice`, `parallel`); otherwise only calls race.
  bool ranks_decide = false;
  std::optional<bool> is_usual_ok{};  // the outcome of the usual schedule, if it was run
};

// Throws what `run` throws. With several jobs, `run` is called on several threads at once.
Exploration explore(const RunSchedule& run, const ExploreOptions& options);

// The command that repeats a run under this schedule; null: the usual one.
using ReplayLine = std::function<std::string(const Schedule* schedule)>;

// The report of the first schedule that fails, or of the usual one if none does, with a `search`; not completed yet
// (sim/judge/complete.h). If schedules end with different verdicts and the usual one is ok, or ranks make decisions
// of their own, the verdict is a race with that schedule's evidence.
Report report_of(const Exploration& found, const ReplayLine& replay);

// Explores a C++ program. Returns the report of the first schedule that fails, or of the usual one if none does. It
// has the text of the failing schedule, which repeats the failure (sim/explore/schedule.h).
Report explore(const Options& options, const Program& program, const ExploreOptions& search = {});

}  // namespace rollcall::sim
