#include "sim/judge/complete_parts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "sim/wording/phrasing.h"

namespace rollcall::check {
namespace {

// Blames the ranks whose seed is not the most common one; all of them, as a tie, if no seed is the most common.
void blame_seeds(const std::vector<std::int64_t>& seeds, Finding& finding) {
  std::map<std::int64_t, RankSet> ranks;
  for (std::size_t rank = 0; rank < seeds.size(); ++rank) {
    ranks[seeds[rank]].insert(static_cast<Rank>(rank));
  }
  const auto size_of = [](const auto& entry) { return entry.second.size(); };
  const auto most = std::ranges::max_element(ranks, {}, size_of);
  finding.tie = std::ranges::count(ranks, most->second.size(), size_of) > 1;
  for (const auto& [seed, own] : ranks) {
    if (finding.tie || seed != most->first) {
      finding.culprits.insert(own);
    }
  }
}

}  // namespace

std::optional<Verdict> judge_samples(const SampleUse& use) {
  if (use.seeds.empty()) {
    return std::nullopt;
  }
  WrongResult wrong;
  Finding& finding = wrong.finding;
  finding.kind = FindingKind::samples_repeated;
  blame_seeds(use.seeds, finding);
  finding.headline = fmt::format("{} with {}: of {} samples, several ranks see {}, and no rank sees {}",
                                 with_verb(finding.culprits, "shuffles", "shuffle"),
                                 finding.tie ? "different seeds" : "a different seed than the others",
                                 use.dataset, use.repeated, use.dropped());
  finding.cause =
      "a sampler gives each rank its part of one shuffled order, and these ranks cut different orders";
  finding.advice =
      "give every rank's sampler the same seed, and every epoch the same number (set_epoch); do not shuffle "
      "the list before the sampler with a random state of the rank's own";
  finding.on_backend = "training continues without an error, on less data than there is";
  return wrong;
}

}  // namespace rollcall::check
