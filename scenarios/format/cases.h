#pragma once

// The cases of a scenario file: one, or one for every combination of its matrix. A case is addressed as in
// pytest: FILE::name[world_size=4].

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

// What a user writes to name scenarios: a file, and which of its cases to use.
struct CaseAddress {
  std::string file;
  std::string selection;  // "name", "name[world_size=4]" or "[world_size=4]"; empty: all
};

// Parses "FILE" or "FILE::selection". A file whose name contains "::" is taken as it is.
CaseAddress parse_address(const std::string& text);

// One case to run.
struct Case {
  std::string file;
  std::string name;        // "uneven inputs"
  std::string parameters;  // "world_size=4,backend=gloo"; empty: the file has no matrix
  std::vector<std::string> tags;
  Position expect{};  // where the file states the expected outcome; otherwise its beginning

  std::string title() const;    // "uneven inputs[world_size=4]"
  std::string address() const;  // "FILE::uneven inputs[world_size=4]"
  bool matches(std::string_view selection) const;
};

// The scenario's name, or else the file's name.
std::string name_of(const Json& root, const std::string& file);

// Returns the cases in file order; a matrix varies its last key fastest. Reads only as much of the file as this needs:
// load_scenario decides whether a case can run. Throws InvalidScenario if the file is not JSON.
std::vector<Case> cases_of(const std::string& file);

// One combination of a matrix: what it sets, and its name. Keys that name no field of a scenario are
// variables of its expressions.
struct Combination {
  std::string parameters;
  std::vector<JsonMember> fields;
  std::vector<std::pair<std::string, std::int64_t>> constants;
};

// The combinations of a file's root. Without a matrix, or with one that check_matrix refuses, a single one that sets
// nothing.
std::vector<Combination> combinations_of(const Json& root);

// Reports what is wrong with a matrix. The root has passed the schema.
void check_matrix(const Json& root, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
