#pragma once

// The published schema of scenario files: editors complete from it, and files are checked against
// it.

#include <string_view>

namespace rollcall::scenario {

// The text of scenario-v1.schema.json, which is built into the program.
std::string_view schema_text();

}  // namespace rollcall::scenario
