#include "traces/logs/kernel_log.h"

#include <fmt/core.h>

#include "traces/logs/lines.h"

namespace rollcall::traces {

namespace {

constexpr std::string_view xid = "NVRM: Xid (";

}  // namespace

bool looks_like_kernel_log(std::string_view bytes) { return bytes.find(xid) != std::string_view::npos; }

std::vector<check::LogFact> read_kernel_log(std::string_view bytes, Rank rank, const std::string& file) {
  std::vector<check::LogFact> facts;
  Lines lines(bytes);
  while (lines.next()) {
    const std::size_t place = lines.line().find(xid);
    if (place == std::string_view::npos) {
      continue;
    }
    check::LogFact& fact = facts.emplace_back();
    fact.kind = check::LogFact::Kind::device_error;
    fact.ranks = rank >= 0 ? RankSet{rank} : RankSet();
    fact.text = lines.line().substr(place, 160);
    fact.seq = number_after(lines.line().substr(place), "): ").value_or(-1);
    fact.place = fmt::format("{}:{}", file, lines.number());
  }
  return facts;
}

}  // namespace rollcall::traces
