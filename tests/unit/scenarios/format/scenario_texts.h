#pragma once

// Scenarios written in tests, and their errors.

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"

namespace rollcall::test {

// Returns a scenario of one rank that runs `statements`, the inside of a list.
inline std::string solo(std::string_view statements, std::string_view more = "") {
  return fmt::format(R"({{"world_size": 1, "groups": {{"alone": [0]}}, "inputs": 3, {} "program": [{}]}})",
                     more, statements);
}

// The same for four ranks.
inline std::string quartet(std::string_view statements, std::string_view more = "") {
  return fmt::format(R"({{"world_size": 4, {} "program": [{}]}})", more, statements);
}

// Returns a scenario's errors, each as "pointer: message -> suggestion".
inline std::vector<std::string> problems(const std::string& text) {
  std::vector<std::string> found;
  try {
    scenario::parse_scenario(text, "test.json");
  } catch (const scenario::InvalidScenario& invalid) {
    for (const scenario::Diagnostic& diagnostic : invalid.diagnostics()) {
      found.push_back(fmt::format("{}{}{}{}", diagnostic.pointer, diagnostic.pointer.empty() ? "" : ": ",
                                  diagnostic.message,
                                  diagnostic.suggestion.empty() ? "" : " -> " + diagnostic.suggestion));
    }
  }
  return found;
}

// Returns the only error in a scenario.
inline std::string problem(const std::string& text) {
  const std::vector<std::string> found = problems(text);
  return found.size() == 1 ? found.front()
                           : fmt::format("{} problems: {}", found.size(), fmt::join(found, " | "));
}

}  // namespace rollcall::test
