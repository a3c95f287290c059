#pragma once

// JSON Schema, as an editor or a service applies it.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace rollcall::test {

// What the schema (draft 7) objects to, a line for each objection; nothing if it accepts the document.
std::string objections(const nlohmann::json& schema, const nlohmann::json& document);

}  // namespace rollcall::test
