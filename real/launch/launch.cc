#include "real/launch/launch.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/core.h>

#include "real/backends/backends.h"
#include "real/evidence/reconstruct.h"
#include "real/launch/supervisor.h"

namespace rollcall::real {
namespace {

// Every rank is a process with connections to all others.
constexpr Rank ranks_max = 256;

void require(bool holds, const std::string& message) {
  if (!holds) {
    throw std::invalid_argument(message);
  }
}

void check(const Options& options) {
  require(options.world_size >= 1 && options.world_size <= ranks_max,
          fmt::format("a real run has 1 to {} ranks", ranks_max));
  require(options.devices.empty() || options.devices.size() == static_cast<std::size_t>(options.world_size),
          "devices must name one device per rank");
  require(options.deadline > 0, "the deadline must be longer than 0");
  require(options.timeout >= 0 && options.time_scale >= 0, "times must not be negative");
  for (const Group& group : options.groups) {
    for (const Rank rank : group.ranks) {
      require(rank >= 0 && rank < options.world_size,
              fmt::format("group {} names ranks outside 0-{}", group.name, options.world_size - 1));
    }
  }
}

std::vector<GroupMembers> members_of(const Options& options) {
  std::vector<Rank> everyone;
  for (Rank rank = 0; rank < options.world_size; ++rank) {
    everyone.push_back(rank);
  }
  std::vector<GroupMembers> groups{{world_group, "world", std::move(everyone)}};
  for (const Group& group : options.groups) {
    groups.push_back({static_cast<GroupId>(groups.size()), group.name, group.ranks});
    std::ranges::sort(groups.back().ranks);
  }
  return groups;
}

Plan plan_of(const Options& options, const Program& program) {
  check(options);
  require(program != nullptr, "there must be a program to run");
  Plan plan{options, program, find_backend(options.backend, options.world_size), members_of(options)};
  plan.options.backend = plan.backend.name;
  return plan;
}

Run supervise(const Plan& plan, const LaunchedRank* launched) {
  RunLog log = Supervisor(plan, launched).run();
  Report report = reconstruct(plan.options, plan.groups, log);
  return {std::move(report), std::move(log)};
}

}  // namespace

Run run(const Options& options, const Program& program) {
  return supervise(plan_of(options, program), nullptr);
}

std::optional<Run> run_launched(const Options& options, const Program& program,
                                const LaunchedRank& launched) {
  require(options.world_size == launched.world_size, "the launcher says how many ranks there are");
  const Plan plan = plan_of(options, program);
  if (launched.rank == 0) {
    return supervise(plan, &launched);
  }
  supervise_for_hub(plan, launched);
  return std::nullopt;
}

}  // namespace rollcall::real
