#include "sim/judge/order_warning.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
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

std::optional<Crossing> first_crossing(const CallOrders& orders) {
  std::map<std::pair<GroupId, GroupId>, std::pair<Rank, Order>> known;  // of the first rank that uses both
  for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank) {
    const Order& order = orders.ranks[rank];
    const std::set<GroupId> used(order.begin(), order.end());
    for (auto a = used.begin(); a != used.end(); ++a) {
      for (auto b = std::next(a); b != used.end(); ++b) {
        Order both;
        std::ranges::copy_if(order, std::back_inserter(both),
                             [&](GroupId group) { return group == *a || group == *b; });
        const auto [entry, is_first] = known.try_emplace({*a, *b}, static_cast<Rank>(rank), both);
        if (!is_first && entry->second.second != both) {
          return Crossing{entry->second.first, static_cast<Rank>(rank), *a, *b};
        }
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
