#pragma once

// Checks a scenario against the published schema, except its statements: those are checked while they are lowered, by
// the same rules but with better messages than "matches none of 32 forms".

#include <string_view>
#include <vector>

#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

class Diagnostics;

// The fields of a scenario, and the schema's rules for each. Reading the schema takes as long as checking a hundred
// files, and is done once: a process that forks many children, each of which checks one file, calls this first.
Json schema_fields();
// The keys of an object in the schema, ascending: of equally near ones, a message suggests the first.
std::vector<std::string_view> keys_of(const Json& rule);

// Reports everything that the schema does not allow, and names features that only a later version can run.
void check_schema(const Json& root, Diagnostics& diagnostics);

// The same for a file that contains only a cluster.
void check_cluster_schema(const Json& root, Diagnostics& diagnostics);

}  // namespace rollcall::scenario
