#pragma once

// The cases of a scenario file: one, or one for every combination of its matrix. A case is addressed as pytest
// does it: FILE::name[world_size=4].

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/json/json_substitute.h"
#include "scenarios/json/json_tree.h"
#include "scenarios/json/source.h"

namespace rollcall::scenario {

class Diagnostics;

// What a user writes to name scenarios: a file, and which of its cases.
struct CaseAddress {
  std::string file;
  std::string selection;  // "name", "name[world_size=4]" or "[world_size=4]"; empty: all
};

// "FILE" or "FILE::selection". A file whose name has "::" in it is taken for itself.
CaseAddress parse_address(const std::string& text);

// One thing to run.
struct Case {
  std::string file;
  std::string name;        // "uneven inputs"
  std::string parameters;  // "world_size=4,backend=gloo"; empty: the file has no matrix
  std::vector<std::string> tags;
  Position expect{};  // where the file says the expected outcome of its run; its beginning where it does not

  std::string title() const;    // "uneven inputs[world_size=4]"
  std::string address() const;  // "FILE::uneven inputs[world_size=4]"
  bool matches(std::string_view selection) const;
};

// What the file is called: its name, or that of the file.
std::string name_of(const Json& root, const std::string& file);

// In order of the file; a matrix varies its last key fastest. Only as much of the file is read as that takes: whether
// a case can run is for load_scenario. Throws InvalidScenario for what is no JSON.
std::vector<Case> cases_of(const std::string& file);

// One combination of a matrix: what it sets, and how it is called. Keys that name no field of a scenario are
// variables of its expressions.
struct Combination {
  std::string parameters;
  std::vector<JsonMember> fields;
  std::vector<std::pair<std::string, std::int64_t>> constants;
};

// Of a file's root. Without a matrix, and with one that check_matrix refuses, a single one that sets nothing.
std::vector<Combination> combinations_of(const Json& root);

// Says what is wrong with a matrix. The root has passed the schema.
void check_matrix(const Json& root, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
