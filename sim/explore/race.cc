#include "sim/explore/race.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace rollcall::sim {
namespace {

std::vector<Variant> variants_of(const Verdict& verdict) {
  if (const auto* mismatch = std::get_if<Mismatch>(&verdict)) {
    return mismatch->variants;
  }
  if (const auto* wrong = std::get_if<WrongResult>(&verdict)) {
    return wrong->variants;
  }
  return {};
}

}  // namespace

Race race_of(const Verdict& wrong, const RankSet& deciders, std::vector<Outcome> outcomes,
             std::int64_t schedules) {
  Race race;
  race.finding = *finding_of(wrong);
  race.variants = variants_of(wrong);
  std::int64_t good = 0;
  for (const Outcome& outcome : outcomes) {
    good += outcome.verdict == "ok" ? outcome.count : 0;
  }
  Finding& finding = race.finding;
  finding.headline = fmt::format("timing decides: {} of {} schedules go wrong; in one, {}", schedules - good,
                                 schedules, finding.headline);
  finding.cause = fmt::format("timing decides what {} {}, and in which order; in one order, {}",
                              ranks_phrase(deciders), deciders.size() == 1 ? "does" : "do", finding.cause);
  finding.advice =
      "make the program enforce the order, or decide on one rank and tell the others before any of them acts "
      "on it";
  finding.culprits = deciders;
  finding.tie = false;
  finding.suspects.clear();
  finding.suspicion.clear();
  race.outcomes = std::move(outcomes);
  return race;
}

bool agree(const std::vector<Outcome>& outcomes) {
  return std::ranges::all_of(
      outcomes, [&](const Outcome& outcome) { return outcome.verdict == outcomes.front().verdict; });
}

}  // namespace rollcall::sim
