#pragma once

// The pieces that every JSON report has.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/verdict.h"

namespace rollcall::viz {

// {key: value}, unless there is nothing to say.
void set(nlohmann::ordered_json& object, const char* key, const std::string& value);
void set(nlohmann::ordered_json& object, const char* key, const std::vector<std::string>& values);

nlohmann::ordered_json call_json(const Call& call);
nlohmann::ordered_json variants_json(const std::vector<Variant>& variants);
// {"repair": {"edits": [...], "verified": true, "alternatives": 0, "tried": 3}}, where one
// was found, or the search was cut short.
void add_repair(nlohmann::ordered_json& object, const Finding& finding);

}  // namespace rollcall::viz
