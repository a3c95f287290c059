#pragma once

// Checks a scenario against the published schema, everything but its statements: those are checked
// while they are lowered, by the same rules but with better messages than "matches none of 32 forms".

#include <string_view>
#include <vector>

#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

class Diagnostics;

// The fields of a scenario, and what the schema says about each. Reading the schema takes as long as checking a hundred
// files, and is done once: a process that forks many, each of which checks one file, asks for the fields first.
Json schema_fields();
// Of an object in the schema, ascending: of equally near ones a message suggests the first.
std::vector<std::string_view> keys_of(const Json& rule);

// Reports what the schema does not allow, and by name what only a later version can run.
void check_schema(const Json& root, Diagnostics& diagnostics);

// The same for a file that holds nothing but a cluster.
void check_cluster_schema(const Json& root, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
