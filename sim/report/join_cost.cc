#include "sim/report/join_cost.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace rollcall {
namespace {

// a / b in thousandths, rounded to the nearest.
std::int64_t thousandths(std::int64_t a, std::int64_t b) {
  return b <= 0 ? 0 : static_cast<std::int64_t>((static_cast<__int128>(a) * 1000 + b / 2) / b);
}

void add_rank(const JoinEpisode& episode, std::vector<JoinedRanks>& ranks) {
  JoinedRanks row{{}, episode.steps, episode.shadow_calls, episode.left - episode.joined};
  const auto alike = std::ranges::find_if(ranks, [&](const JoinedRanks& other) {
    return other.steps == row.steps && other.shadow_calls == row.shadow_calls && other.idle == row.idle;
  });
  (alike == ranks.end() ? ranks.emplace_back(std::move(row)) : *alike).ranks.insert(episode.rank);
}

// A rank with n steps takes part in steps 0 to n - 1.
std::vector<ActiveRanks> active_ranks(std::vector<std::int64_t> steps) {
  std::ranges::sort(steps);
  std::vector<ActiveRanks> active;
  std::int64_t from = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] > from) {
      active.push_back({from, steps[i], static_cast<std::int64_t>(steps.size() - i)});
      from = steps[i];
    }
  }
  return active;
}

}  // namespace

JoinCost join_cost(std::string group, const std::vector<JoinEpisode>& episodes, Duration run) {
  JoinCost cost;
  cost.group = std::move(group);
  cost.run = run;
  std::vector<std::int64_t> steps;
  Time first_joined = episodes.front().joined;
  Time left = 0;
  for (const JoinEpisode& episode : episodes) {
    add_rank(episode, cost.ranks);
    steps.push_back(episode.steps);
    first_joined = std::min(first_joined, episode.joined);
    left = std::max(left, episode.left);
  }
  cost.shadowing = left - first_joined;
  cost.steps = std::ranges::max(steps);
  cost.sum_up();
  cost.active = active_ranks(std::move(steps));
  return cost;
}

void JoinCost::sum_up() {
  size = 0;
  fewest_steps = steps;
  steps_of_all = 0;
  for (const JoinedRanks& each : ranks) {
    const auto alike = static_cast<std::int64_t>(each.ranks.size());
    size += alike;
    fewest_steps = std::min(fewest_steps, each.steps);
    steps_of_all += alike * each.steps;
  }
}

std::int64_t JoinCost::inputs_lost_permille() const {
  return thousandths(steps_of_all - fewest_steps * size, steps_of_all);
}

std::int64_t JoinCost::time_saved_permille() const { return thousandths(shadowing, run); }

std::int64_t JoinCost::mean_active_thousandths() const { return thousandths(steps_of_all, steps); }

std::string JoinCost::advice() const {
  if (!is_uneven()) {
    return "";
  }
  if (fewest_steps == 0) {
    return "some ranks have no input at all: give them some, because stopping when they stop would train "
           "nothing";
  }
  return fmt::format(
      "giving every rank the same number of inputs (drop_last) would lose {} of the inputs and save {} of "
      "the time",
      percent_phrase(inputs_lost_permille()), percent_phrase(time_saved_permille()));
}

std::string percent_phrase(std::int64_t permille) {
  return fmt::format("{}.{} %", permille / 10, permille % 10);
}

}  // namespace rollcall
