#pragma once

// One file of the hang library: what a tool has to find, and whether a report has found it.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/report.h"

namespace rollcall::conformance {

// The real failures; and failures that we made up, with the truth we would argue for.
inline constexpr const char* hang_library = "hangs";
inline constexpr const char* made_up_hangs = "made_up_hangs";

// The ids of all cases of a library, sorted.
std::vector<std::string> hang_ids(const std::string& library = hang_library);
std::string hang_path(const std::string& id, const std::string& library = hang_library);
nlohmann::json read_hang(const std::string& id, const std::string& library = hang_library);

// Is the verdict's word the expected one?
bool verdict_agrees(const nlohmann::json& expect, const Report& report);
// Are the culprits the expected ranks, or more of them with the expected ones listed first?
bool culprits_agree(const nlohmann::json& expect, const Report& report);
// Does the report name the expected place, or an earlier one where calls met that do not belong together?
bool place_agrees(const nlohmann::json& expect, const Report& report);

// The same case with its ranks numbered backwards.
nlohmann::json renumbered(const nlohmann::json& hang);

// The culprits in the order in which a report lists them.
std::vector<Rank> ranked_culprits(const Report& report);

}  // namespace rollcall::conformance
