#pragma once

// Warns about a run that ends well although ranks use their groups in different orders. The verdict stays.

#include <map>
#include <string>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/report/report.h"

namespace rollcall::check {

// The groups of a run's collectives, as each rank called them.
struct CallOrders {
  std::vector<std::vector<GroupId>> ranks{};  // by global rank
  std::map<GroupId, std::string> names{};     // of all but the world
};

// Runs with more ranks or calls than these are not compared.
inline constexpr Rank ordered_ranks_max = 256;
inline constexpr std::int64_t ordered_calls_max = 100'000;

// Adds a warning for the first two groups that ranks in both use in different orders, if the run completed.
void warn_about_order(const CallOrders& orders, Report& report);

}  // namespace rollcall::check
