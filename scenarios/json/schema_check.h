#pragma once

// Checks a scenario against the published schema, everything but its statements: those are checked
// while they are lowered, by the same rules but with better messages than "matches none of 32 forms".

#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

class Diagnostics;

// Reports what the schema does not allow, and by name what only a later version can run.
void check_schema(const Json& root, Diagnostics& diagnostics);

// The same for a file that holds nothing but a cluster.
void check_cluster_schema(const Json& root, Diagnostics& diagnostics);

// Does now what the first check_schema would: for a process that forks many, each of which checks one file.
void prepare_schema();

}  // namespace rollcall::scenario
