#include "sim/report/blame.h"

#include <vector>

namespace rollcall {

bool is_undecided(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  const auto* deadlock = std::get_if<Deadlock>(&verdict);
  return finding != nullptr &&
         (finding->tie || !finding->suspects.empty() || (deadlock != nullptr && !deadlock->cycle.empty()));
}

bool blames(const Verdict& verdict, const RankSet& ranks) {
  const Finding* finding = finding_of(verdict);
  if (finding == nullptr) {
    return ranks.empty();
  }
  if (finding->culprits.size() > ranks.size() && is_undecided(verdict)) {
    std::vector<Rank> first = finding->suspects.empty() ? finding->culprits.to_vector() : finding->suspects;
    first.resize(ranks.size());
    return RankSet::of(first) == ranks;
  }
  return finding->culprits == ranks;
}

}  // namespace rollcall
