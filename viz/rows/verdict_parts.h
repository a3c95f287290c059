#pragma once

// The parts that a verdict has in addition to its finding, for writers that treat every verdict alike.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

// The calls to compare, the tensors that hold a wrong value or were used too early, the schedules that were
// tried. Null for verdicts that have none.
const std::vector<Variant>* variants_of(const Verdict& verdict);
const std::vector<TensorPlace>* tensors_of(const Verdict& verdict);

// The line to inspect first: a culprit's call if calls are compared, otherwise the call that ranks wait in. The
// earliest slot that went wrong takes precedence over the one where it was noticed. Empty if there is none.
std::string place_to_look(const Verdict& verdict);
const std::vector<Outcome>* outcomes_of(const Verdict& verdict);

// A collective, by its group and number.
struct Slot {
  std::string group;
  std::int64_t seq = 0;
};
// The slot where the run failed: the earliest one that went wrong, or else the one where that was noticed.
std::optional<Slot> broken_slot(const Verdict& verdict);

// "t is 3, expected 4" or "t written before 'w' is waited for", depending on the kind of the finding.
std::string tensor_phrase(const TensorPlace& place, FindingKind kind);
// The heading for these places: "Values", "Written too early".
std::string_view tensors_title(FindingKind kind);
// "3 x ok, 1 x deadlock (missing_participant), of more that are possible"; empty if only one was tried.
std::string outcomes_phrase(const Report& report);
// What is known about other schedules. Never "nothing depends on timing" if something does.
std::string timing_phrase(const Report& report);
// The same for a search: how many schedules, and whether those are all.
std::string search_phrase(const Report& report, const SearchResult& search);
// The reason why more than one side is named. The finding must be a tie.
std::string tie_phrase(const Finding& finding);
// "let rank 0 call ... With that, all 4 ranks finish (a run confirmed it)", with `proof` at its end; empty if the
// finding has no repair.
std::string repair_phrase(const Finding& finding, std::string_view proof);
// The proofs for runs and for recordings.
std::string run_proof(const Report& report);
inline constexpr std::string_view replay_proof =
    "the recorded calls fit together, and no rank waits forever (a replay confirmed it)";

}  // namespace rollcall::viz
