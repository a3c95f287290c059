#include "traces/logs/store_barrier_log.h"

#include <map>

#include "traces/logs/lines.h"

namespace rollcall::traces {

namespace {

using check::LogFact;

constexpr std::string_view waits = "store based barrier";
constexpr std::string_view is_through = "Completed store-based barrier for key:";
constexpr std::string_view key = "store_based_barrier_key:";

}  // namespace

bool looks_like_store_barrier(std::string_view bytes) { return contains(bytes, key); }

std::vector<LogFact> read_store_barriers(const LogStream& log) {
  std::map<Rank, LogFact> last;
  for (const auto& [number, line] : log.lines) {
    const std::optional<std::int64_t> barrier = number_after(line, key);
    if (!barrier) {
      continue;
    }
    if (contains(line, is_through)) {
      last.erase(rank_after(line, "Rank ").value_or(-1));
      continue;
    }
    const std::optional<Rank> rank = rank_after(line, "rank: ");
    if (!rank || !contains(line, waits)) {
      continue;
    }
    LogFact& fact = last[*rank];
    fact.kind = LogFact::Kind::in_store_barrier;
    fact.ranks = RankSet{*rank};
    fact.op = barrier == 1 ? "init_process_group" : "new_group";
    fact.seq = *barrier;
    fact.expected = number_after(line, "(world_size=").value_or(0);
    fact.count = number_after(line, "worker_count=").value_or(0);
    fact.line = number;
  }
  std::vector<LogFact> facts;
  for (auto& [rank, fact] : last) {
    facts.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace rollcall::traces
