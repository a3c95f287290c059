#pragma once

// What a verdict has in addition to its finding, for writers that lay every verdict out alike.

#include <string>
#include <string_view>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

// The calls to compare, the tensors that hold the wrong value or were used too early, the schedules that were
// tried. Null for verdicts that have none.
const std::vector<Variant>* variants_of(const Verdict& verdict);
const std::vector<TensorPlace>* tensors_of(const Verdict& verdict);

// The line to look at first: a culprit's call where calls are compared, otherwise the call that is waited in. The
// earliest slot that went wrong comes before the one where it was noticed. Empty when there is none.
std::string place_to_look(const Verdict& verdict);
const std::vector<Outcome>* outcomes_of(const Verdict& verdict);

// "t is 3, expected 4"; "t written before 'w' is waited for", as the kind of the finding has it.
std::string tensor_phrase(const TensorPlace& place, FindingKind kind);
// Over these places: "Values", "Written too early".
std::string_view tensors_title(FindingKind kind);
// "3 x ok, 1 x deadlock (missing_participant), of more that are possible"; empty when only one was tried.
std::string outcomes_phrase(const Report& report);
// What is known about other schedules than this one. Never "nothing depends on timing" where something does.
std::string timing_phrase(const Report& report);
// The same for a search: how many schedules, and whether that is all.
std::string search_phrase(const Report& report, const SearchResult& search);
// Why more than one side is named. The finding is a tie.
std::string tie_phrase(const Finding& finding);
// "let rank 0 call ... With that, all 4 ranks finish: it was run", with `proof` at its end; empty where no repair was
// found.
std::string repair_phrase(const Finding& finding, std::string_view proof);
// Of runs, and of recordings.
std::string run_proof(Rank world_size);
inline constexpr std::string_view replay_proof =
    "the recorded calls fit together, and nobody waits in vain: they were replayed";

}  // namespace rollcall::viz
