#pragma once

// A JSON Schema validator, which works like that of an editor or a service.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace rollcall::test {

// Returns a line for each violation of the schema (draft 7), empty if the document is valid.
std::string objections(const nlohmann::json& schema, const nlohmann::json& document);

}  // namespace rollcall::test
