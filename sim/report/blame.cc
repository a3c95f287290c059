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

bool is_inferred_from_calls(const Verdict& verdict) {
  const bool is_about_calls = std::holds_alternative<Deadlock>(verdict) ||
                              std::holds_alternative<Mismatch>(verdict) ||
                              std::holds_alternative<ResourceLeak>(verdict);
  if (!is_about_calls) {
    return false;
  }
  const FindingKind kind = finding_of(verdict)->kind;
  return kind != FindingKind::rank_crashed && kind != FindingKind::join_hook_mismatch &&
         kind != FindingKind::waited_twice && kind != FindingKind::work_never_waited &&
         kind != FindingKind::store_cycle;
}

Confidence confidence_in_blame(const Verdict& verdict) {
  const Finding* finding = finding_of(verdict);
  if (finding == nullptr) {
    return Confidence::high;
  }
  // In a cycle through the store, any rank of it may have had to set the key.
  if (finding->tie || finding->kind == FindingKind::store_cycle) {
    return Confidence::low;
  }
  if (finding->repair && !finding->repair->steps.empty()) {
    const bool is_proven = finding->repair->alternatives == 0 && !finding->repair->is_partial;
    // Most ranks are seldom wrong: there may be a second mistake, and the change that was found covers both.
    const bool blames_most = finding->at && 2 * finding->culprits.size() >
                                                finding->at->waiting.size() + finding->at->missing.size();
    return blames_most ? Confidence::low : is_proven ? Confidence::high : Confidence::medium;
  }
  if (const auto* deadlock = std::get_if<Deadlock>(&verdict);
      deadlock != nullptr && !deadlock->cycle.empty()) {
    return Confidence::low;
  }
  if (!finding->repair) {
    return is_inferred_from_calls(verdict) ? Confidence::medium : Confidence::high;
  }
  return finding->repair->search == Repair::Search::complete ? Confidence::low : Confidence::medium;
}

std::string_view to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::high:
      return "high";
    case Confidence::medium:
      return "medium";
    case Confidence::low:
      return "low";
  }
  return "low";
}

}  // namespace rollcall
