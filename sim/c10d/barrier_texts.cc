#include "sim/c10d/barrier_texts.h"

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

namespace {

// Python's str(timedelta): "0:00:03", "0:00:00.500000", "1 day, 0:00:00".
std::string timedelta_text(Duration duration) {
  const Duration seconds = duration / second;
  const Duration days = seconds / 86'400;
  std::string text =
      fmt::format("{}:{:02}:{:02}", seconds % 86'400 / 3'600, seconds % 3'600 / 60, seconds % 60);
  if (const Duration rest = duration % second / microsecond; rest != 0) {
    text += fmt::format(".{:06}", rest);
  }
  return days == 0 ? text : fmt::format("{} day{}, {}", days, days == 1 ? "" : "s", text);
}

}  // namespace

std::string store_barrier_timeout_text(Rank rank, std::int64_t number, Rank world_size, Rank worker_count,
                                       Duration timeout) {
  return fmt::format(
      "Timed out initializing process group in store based barrier on rank: {}, for key: "
      "store_based_barrier_key:{} (world_size={}, worker_count={}, timeout={})",
      rank, number + 2, world_size, worker_count, timedelta_text(timeout));
}

}  // namespace rollcall
