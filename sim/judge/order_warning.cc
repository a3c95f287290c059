#include "sim/judge/order_warning.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace rollcall::check {
namespace {

using Order = std::vector<GroupId>;  // of one rank's collectives

// Two ranks that use two groups in different orders.
struct Crossing {
  Rank first = 0;
  Rank second = 0;
  GroupId a = 0;
  GroupId b = 0;
};

struct RankOrder {
  explicit RankOrder(const Order& order) : calls(order), groups(order) {
    std::ranges::sort(groups);
    groups.erase(std::ranges::unique(groups).begin(), groups.end());
  }

  Order calls_on(const std::vector<GroupId>& ascending) const {
    Order chosen;
    std::ranges::copy_if(calls, std::back_inserter(chosen),
                         [&](GroupId group) { return std::ranges::binary_search(ascending, group); });
    return chosen;
  }

  const Order& calls;
  std::vector<GroupId> groups;  // ascending
};

// Two ranks that use two groups in different orders differ in the calls on all of their common groups, too. So there is
// no need to look at each pair of groups: a program may make thousands.
std::optional<Crossing> first_crossing(const CallOrders& orders) {
  const std::vector<RankOrder> ranks(orders.ranks.begin(), orders.ranks.end());
  for (std::size_t second = 1; second < ranks.size(); ++second) {
    for (std::size_t first = 0; first < second; ++first) {
      if (ranks[first].calls == ranks[second].calls) {
        continue;
      }
      std::vector<GroupId> common;
      std::ranges::set_intersection(ranks[first].groups, ranks[second].groups, std::back_inserter(common));
      if (common.size() < 2) {
        continue;
      }
      const Order one = ranks[first].calls_on(common);
      const Order other = ranks[second].calls_on(common);
      const auto [a, b] = std::ranges::mismatch(one, other);
      if (a != one.end() && b != other.end()) {
        return Crossing{static_cast<Rank>(first), static_cast<Rank>(second), std::min(*a, *b),
                        std::max(*a, *b)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void warn_about_order(const CallOrders& orders, Report& report) {
  if (!std::holds_alternative<Completed>(report.verdict) || report.ops > ordered_calls_max ||
      report.world_size > ordered_ranks_max) {
    return;
  }
  const auto crossing = first_crossing(orders);
  if (!crossing) {
    return;
  }
  const auto name_of = [&](GroupId group) {
    const auto found = orders.names.find(group);
    return found == orders.names.end() ? "world" : found->second;
  };
  OutputLine line;
  line.rank = crossing->second;
  line.warning = true;
  line.text = fmt::format(
      "warning: this rank uses groups {} and {} in a different order than rank {}; nothing blocks here, but "
      "it is a deadlock if a GPU has no room for both calls or a host waits between them (rollcall explain "
      "order_crossing)",
      name_of(crossing->a), name_of(crossing->b), crossing->first);
  report.output.push_back(std::move(line));
  std::ranges::stable_sort(report.output, {}, &OutputLine::rank);
}

}  // namespace rollcall::check
