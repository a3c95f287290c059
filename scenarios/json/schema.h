#pragma once

// The published schema of scenario files: what editors complete from and files are checked against.

#include <string_view>

namespace rollcall::scenario {

// The text of scenario-v1.schema.json, which is built into the program.
std::string_view schema_text();

}  // namespace rollcall::scenario
