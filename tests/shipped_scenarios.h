#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rollcall::test {

// The scenarios that ship as examples, sorted by path: scenarios/*.json, and scenarios/examples with its chapters.
const std::vector<std::filesystem::path>& shipped_examples();
// The scenarios of scenarios/real_hangs, sorted.
const std::vector<std::filesystem::path>& shipped_hangs();
// Both.
std::vector<std::filesystem::path> shipped_scenarios();

// Returns the path of the example of that name, from the repository's root:
// "scenarios/examples/join/hook_too_long.json".
std::string example_file(const std::string& name);

}  // namespace rollcall::test
