#pragma once

// One file of the hang library: what a tool has to find, and checks whether a report has found it.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/report.h"

namespace rollcall::conformance {

// The real failures; and failures that we made up, with the truth that we would argue for.
inline constexpr const char* hang_library = "hangs";
inline constexpr const char* made_up_hangs = "made_up_hangs";

// Returns the ids of all cases of a library, sorted.
std::vector<std::string> hang_ids(const std::string& library = hang_library);
std::string hang_path(const std::string& id, const std::string& library = hang_library);
nlohmann::json read_hang(const std::string& id, const std::string& library = hang_library);

// True if the verdict's word is the expected one.
bool verdict_agrees(const nlohmann::json& expect, const Report& report);
// True if the culprits are the expected ranks, or more ranks with the expected ones listed first.
bool culprits_agree(const nlohmann::json& expect, const Report& report);
// True if the report names the expected place, or an earlier one where calls met that do not belong together.
bool place_agrees(const nlohmann::json& expect, const Report& report);

// Returns the same case with its ranks numbered in reverse.
nlohmann::json renumbered(const nlohmann::json& hang);

// Returns the culprits in the order in which the report lists them.
std::vector<Rank> ranked_culprits(const Report& report);

}  // namespace rollcall::conformance
