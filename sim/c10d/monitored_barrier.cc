#include "sim/c10d/monitored_barrier.h"

#include <fmt/format.h>

namespace rollcall {

std::string monitored_root_text(const std::vector<Rank>& missing, bool wait_all_ranks, Duration timeout,
                                const std::string& transport) {
  if (wait_all_ranks) {
    return fmt::format("[Rank 0]: Ranks {} failed to pass monitoredBarrier in {} ms",
                       fmt::join(missing, ", "), timeout / millisecond);
  }
  return fmt::format("[Rank 0]: Rank {} failed to pass monitoredBarrier in {} ms\n Original exception: \n{}",
                     missing.front(), timeout / millisecond, transport);
}

std::string monitored_member_text(Rank group_rank, const std::string& transport) {
  return fmt::format(
      "Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
      "rank 0. Please check rank 0 logs for faulty rank.\n Original exception: \n{}",
      group_rank, transport);
}

}  // namespace rollcall
