#include "traces/logs/kernel_log.h"

#include "traces/logs/lines.h"

namespace rollcall::traces {

namespace {

constexpr std::string_view xid = "NVRM: Xid (";

}  // namespace

bool looks_like_kernel_log(std::string_view bytes) { return contains(bytes, xid); }

std::vector<check::LogFact> read_kernel_log(const LogStream& log) {
  std::vector<check::LogFact> facts;
  for (const LogLine& line : log.lines) {
    const std::size_t place = line.text.find(xid);
    if (place == std::string_view::npos) {
      continue;
    }
    check::LogFact& fact = add_fact(facts, check::LogFact::Kind::device_error,
                                    log.rank >= 0 ? RankSet{log.rank} : RankSet(), line.number);
    fact.text = line.text.substr(place, 160);
    fact.seq = number_after(line.text.substr(place), "): ").value_or(-1);
  }
  return facts;
}

}  // namespace rollcall::traces
