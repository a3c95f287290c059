#include "scenarios/cli/watched_run.h"

#include <fmt/core.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/subject.h"
#include "scenarios/cli/terminal/machine_memory.h"
#include "scenarios/cli/terminal/progress.h"
#include "sim/fibers/stack_arena.h"
#include "viz/rows/phrases.h"

namespace rollcall::cli {

namespace {

// The usable share of the memory that is left when a run begins; reports and traces need some, too.
constexpr std::int64_t usable_tenths = 9;

// Throws UsageError if there is not enough memory for the ranks alone.
void require_room(Rank ranks) {
  const std::int64_t addresses =
      ranks * static_cast<std::int64_t>(sim::StackArena::bytes_each(static_cast<std::size_t>(ranks)));
  if (const auto available = available_addresses(); available && addresses > *available) {
    throw UsageError(
        fmt::format("{} ranks need {} of address space, but only {} are left (ulimit -v); simulate fewer "
                    "ranks, or raise the limit",
                    ranks, viz::bytes_phrase(addresses), viz::bytes_phrase(*available)));
  }
  const auto available = available_memory();
  if (available && ranks * least_bytes_per_rank > *available) {
    throw UsageError(
        fmt::format("{} ranks need at least {} of memory, but only {} are left on this machine or in this "
                    "process's control group; simulate fewer ranks, or use a machine with more memory",
                    ranks, viz::bytes_phrase(ranks * least_bytes_per_rank), viz::bytes_phrase(*available)));
  }
}

}  // namespace

void watch(scenario::Scenario& loaded, Progress& progress) {
  sim::Options& options = loaded.options;
  require_room(options.world_size);
  if (const auto available = available_memory(); available && options.limits.memory_bytes == 0) {
    options.limits.memory_bytes = memory_in_use() + *available / 10 * usable_tenths;
  }
  options.watch.memory_in_use = memory_in_use;
  progress.say(fmt::format("running {}", loaded.address()));
  if (progress.is_watched()) {
    options.watch.progress = [&progress, what = "running " + loaded.address(), ranks = options.world_size](
                                 const sim::Progress& run) { progress.say(run_text(what, run, ranks)); };
  }
}

scenario::Scenario load_watched(const std::string& address, Progress& progress,
                                const scenario::Overrides& overrides) {
  require_scenario(address);
  progress.say(fmt::format("reading {}", address));
  scenario::Scenario loaded = scenario::load_scenario(address, overrides);
  watch(loaded, progress);
  return loaded;
}

}  // namespace rollcall::cli
