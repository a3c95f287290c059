#include "traces/logs/watch_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "traces/logs/lines.h"

namespace rollcall::traces {

namespace {

using Kind = check::LogFact::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 4> line_kinds = {{
    {" ended: ", Kind::ended},
    {" exited: ", Kind::exited},
    {" stopped: ", Kind::stopped},
    {" missing: ", Kind::not_joined},
}};
constexpr std::size_t shown_text_max = 200;

}  // namespace

bool looks_like_watch_log(std::string_view bytes) { return bytes.starts_with(watch_log_title); }

std::vector<check::LogFact> read_watch_log(const LogStream& log) {
  std::vector<check::LogFact> facts;
  for (const auto& [number, line] : log.lines) {
    const std::optional<Rank> rank = line.starts_with("rank ") ? rank_after(line, "rank ") : std::nullopt;
    const auto word =
        std::ranges::find_if(line_kinds, [line](const auto& each) { return contains(line, each.first); });
    if (!rank || word == line_kinds.end()) {
      continue;
    }
    check::LogFact& fact = add_fact(facts, word->second, RankSet{*rank}, number);
    const std::string_view text = line.substr(line.find(word->first) + word->first.size(), shown_text_max);
    (fact.kind == Kind::not_joined ? fact.op : fact.text) = text;  // a process that has not come may be alive
  }
  return facts;
}

}  // namespace rollcall::traces
