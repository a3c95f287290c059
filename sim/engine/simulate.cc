#include "sim/engine/simulate.h"

#include <algorithm>
#include <deque>
#include <set>
#include <stdexcept>
#include <string_view>

#include <fmt/core.h>

#include "sim/c10d/backend_traits.h"
#include "sim/engine/apart.h"
#include "sim/engine/engine.h"
#include "sim/engine/order_noter.h"
#include "sim/engine/rehearsal.h"
#include "sim/judge/complete.h"

namespace rollcall::sim {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) {
    throw std::invalid_argument(message);
  }
}

std::string names_of_backends() {
  std::string names;
  for (const BackendTraits& backend : known_backends()) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : " or ", backend.name);
  }
  return names;
}

void check(const Group& group, Rank world_size) {
  require(!group.name.empty() && group.name != "world",
          "a group needs its own name; \"world\" exists already");
  require(!group.ranks.empty(), fmt::format("group {} has no ranks", group.name));
  std::vector<Rank> ranks = group.ranks;
  std::sort(ranks.begin(), ranks.end());
  require(ranks.front() >= 0 && ranks.back() < world_size,
          fmt::format("group {} names ranks outside 0-{}", group.name, world_size - 1));
  require(std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end(),
          fmt::format("group {} names a rank twice", group.name));
}

void check(const Options& options) {
  require(options.world_size >= 1, "world_size must be at least 1");
  require(find_backend_traits(options.backend) != nullptr,
          fmt::format("unknown backend \"{}\"; choose {}", options.backend, names_of_backends()));
  require(options.devices.empty() || options.devices.size() == static_cast<std::size_t>(options.world_size),
          "devices must name one device per rank");
  require(options.timeout >= 0, "timeout must not be negative; 0 means none");
  require(options.comm_slots >= 0, "comm_slots must not be negative; 0 means any number");
  require(options.ranks_per_host >= 1, "ranks_per_host must be at least 1");
  require(options.limits.ops > 0 && options.limits.simulated_time > 0, "limits must be positive");
  std::set<std::string_view> names;
  for (const Group& group : options.groups) {
    check(group, options.world_size);
    require(names.insert(group.name).second, fmt::format("two groups are called {}", group.name));
  }
}

// The noters wrap the engine's backend, inside the caller's decorators.
Report run_noting_orders(const Options& options, const Program& program) {
  check::CallOrders orders;
  orders.ranks.resize(static_cast<std::size_t>(options.world_size));
  std::deque<OrderNoter> noters;
  Options own = options;
  own.decorate = [&](Backend& engine) -> std::unique_ptr<Backend> {
    return options.decorate ? options.decorate(noters.emplace_back(engine, orders))
                            : std::make_unique<OrderNoter>(engine, orders);
  };
  Report report = Engine(own, program).run();
  check::warn_about_order(orders, report);
  return report;
}

}  // namespace

Report run_once(const Options& options, const Program& program) {
  check(options);
  require(program != nullptr, "there must be a program to run");
  Report report = options.world_size <= check::ordered_ranks_max ? run_noting_orders(options, program)
                                                                 : Engine(options, program).run();
  report.samples = options.samples;
  return report;
}

void complete(Report& report, const Options& options, const Program& program) {
  const Rehearsal rehearsal(options, program);
  const check::Outlook nothing;
  const Apart apart(rehearsal);
  check::complete(report, options.may_run_again ? static_cast<const check::Outlook&>(apart) : nothing);
}

Report run(const Options& options, const Program& program) {
  Report report = run_once(options, program);
  complete(report, options, program);
  return report;
}

}  // namespace rollcall::sim
