#include "scenarios/run/order_warning.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "scenarios/format/scenario.h"
#include "scenarios/run/step_log.h"

namespace rollcall::scenario {
namespace {

constexpr std::int64_t calls_max = 100'000;
constexpr Rank ranks_max = 256;

using Order = std::vector<GroupId>;  // of one rank's collectives

// Two ranks that use two groups in different orders.
struct Crossing {
  Rank first = 0;
  Rank second = 0;
  GroupId a = 0;
  GroupId b = 0;
};

// The calls on these two groups alone.
Order only(const Order& order, GroupId a, GroupId b) {
  Order result;
  for (const GroupId group : order) {
    if (group == a || group == b) {
      result.push_back(group);
    }
  }
  return result;
}

std::optional<Crossing> first_crossing(const StepLog& log) {
  std::map<std::pair<GroupId, GroupId>, std::pair<Rank, Order>> known;  // of the first rank that uses both
  for (const auto& [rank, steps] : log.ranks) {
    Order order;
    for (const Step& step : steps) {
      order.push_back(step.group);
    }
    const std::set<GroupId> used(order.begin(), order.end());
    for (auto a = used.begin(); a != used.end(); ++a) {
      for (auto b = std::next(a); b != used.end(); ++b) {
        Order both = only(order, *a, *b);
        const auto [entry, is_first] = known.try_emplace({*a, *b}, rank, both);
        if (!is_first && entry->second.second != both) {
          return Crossing{entry->second.first, rank, *a, *b};
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void warn_about_order(const Scenario& scenario, Report& report) {
  const bool is_asked = std::holds_alternative<Completed>(report.verdict) &&
                        !scenario.options.groups.empty() && report.schedules == 1 &&
                        report.ops <= calls_max && report.world_size <= ranks_max;
  if (!is_asked) {
    return;
  }
  std::vector<Rank> everyone(static_cast<std::size_t>(report.world_size));
  std::iota(everyone.begin(), everyone.end(), 0);
  const StepLog log = record_steps(scenario, everyone);
  const auto crossing = first_crossing(log);
  if (!crossing) {
    return;
  }
  OutputLine line;
  line.rank = crossing->second;
  line.warning = true;
  line.text = fmt::format(
      "warning: this rank uses groups {} and {} in a different order than rank {}; nothing blocks here, but "
      "it is a deadlock if a GPU has no room for both calls or a host waits between them (rollcall explain "
      "order_crossing)",
      log.group_name(crossing->a), log.group_name(crossing->b), crossing->first);
  report.output.push_back(std::move(line));
  std::ranges::stable_sort(report.output, {}, &OutputLine::rank);
}

}  // namespace rollcall::scenario
