#pragma once

// The parts that JSON reports have in common.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/verdict.h"

namespace rollcall::viz {

// Sets {key: value} unless the value is empty.
void set(nlohmann::ordered_json& object, const char* key, const std::string& value);
void set(nlohmann::ordered_json& object, const char* key, const std::vector<std::string>& values);

nlohmann::ordered_json call_json(const Call& call);
nlohmann::ordered_json variants_json(const std::vector<Variant>& variants);
// Adds {"repair": {"edits": [...], "verified": true, "alternatives": 0, "tried": 3}} if a repair
// was found, or if the search was cut short.
void add_repair(nlohmann::ordered_json& object, const Finding& finding);

}  // namespace rollcall::viz
