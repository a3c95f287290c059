#include "traces/watch/pulse.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

namespace rollcall::watch {

namespace {

constexpr Duration window = 6 * second;
constexpr std::size_t telling_looks_min = 10;  // with fewer, it is chance
constexpr double last_share_min = 0.6;         // of the looks in which a rank was awaited
constexpr Duration silence_shown_min = second;

// With three digits.
std::string rate(double per_second) {
  return fmt::format("{:.{}f}", per_second, per_second >= 99.95 ? 0 : per_second >= 9.995 ? 1 : 2);
}

}  // namespace

std::string elapsed_phrase(Duration duration) {
  if (duration < second) {
    return fmt::format("{} ms", duration / millisecond);
  }
  const Duration seconds = (duration + second / 2) / second;
  if (seconds < 60) {
    return fmt::format("{} s", seconds);
  }
  const Duration minutes = seconds / 60;
  return minutes < 60 ? fmt::format("{} min {} s", minutes, seconds % 60)
                      : fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

void Pulse::look(Time now, const std::vector<RankMoment>& ranks, std::uint64_t steps) {
  Look look{now, 0, steps, {}};
  bool anybody_waits = false;
  for (const RankMoment& rank : ranks) {
    look.moves += rank.moves;
    anybody_waits = anybody_waits || rank.waits;
    if (!rank.waits) {
      look.awaited.push_back(rank.rank);
    }
  }
  if (!anybody_waits || 2 * look.awaited.size() > ranks.size()) {
    look.awaited.clear();
  }
  if (ranks.size() != ranks_) {
    looks_.clear();  // a new rank brings all the calls that it has made so far
    ranks_ = ranks.size();
  }
  looks_.push_back(std::move(look));
  while (looks_.front().at < now - window) {
    looks_.pop_front();
  }
  const std::optional<Rank> last = find_last();
  last_since_ = last == last_ ? last_since_ : now;
  last_ = last;
}

std::optional<Rank> Pulse::find_last() const {
  std::map<Rank, std::size_t> awaited;
  std::size_t telling = 0;
  for (const Look& look : looks_) {
    telling += look.awaited.empty() ? 0 : 1;
    for (const Rank rank : look.awaited) {
      ++awaited[rank];
    }
  }
  const auto most = std::ranges::max_element(awaited, {}, [](const auto& entry) { return entry.second; });
  const bool is_clear = telling >= telling_looks_min &&
                        static_cast<double>(most->second) >= last_share_min * static_cast<double>(telling);
  return is_clear ? std::optional(most->first) : std::nullopt;
}

std::string Pulse::line(Time now, Duration silence) const {
  if (ranks_ == 0) {
    return "no rank has started";
  }
  std::string text = fmt::format("{} {}", ranks_, ranks_ == 1 ? "rank" : "ranks");
  const Look& first = looks_.front();
  const Look& latest = looks_.back();
  if (latest.at > first.at) {
    const double seconds = static_cast<double>(latest.at - first.at) / static_cast<double>(second);
    // A rank that was restarted counts from 0.
    const auto grown = [](std::uint64_t before, std::uint64_t after) {
      return static_cast<double>(after - std::min(before, after));
    };
    if (latest.steps > 0) {
      text += fmt::format("  {} steps/s", rate(grown(first.steps, latest.steps) / seconds));
    }
    // A call counts two moves: it is made, and it ends.
    text += fmt::format("  {} calls/s per rank",
                        rate(grown(first.moves, latest.moves) / 2 / static_cast<double>(ranks_) / seconds));
  }
  if (last_) {
    text += fmt::format("  last: rank {}, for {}", *last_, elapsed_phrase(now - last_since_));
  }
  if (silence >= silence_shown_min) {
    text += fmt::format("  nothing has moved for {}", elapsed_phrase(silence));
  }
  return text;
}

}  // namespace rollcall::watch
