#pragma once

// Writes scenarios as people would: one statement per line, blocks indented.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace rollcall::scenario {

using OrderedJson = nlohmann::ordered_json;

// {"all_reduce": {"numel": 4}}, on one line.
std::string one_line(const OrderedJson& value);

// Returns a whole scenario: members on lines of their own, in their order, one statement per line. `comment`
// comes first, line by line; may be empty.
std::string scenario_text(const OrderedJson& scenario, const std::string& comment);

}  // namespace rollcall::scenario
