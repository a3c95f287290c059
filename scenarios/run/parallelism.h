#pragma once

// Parallelism: the pipelines, parallel modules, and rings of one rank of a scenario.

#include <functional>

#include "scenarios/program/program.h"
#include "sim/base/site.h"

namespace rollcall::scenario {

class RankFrame;

// Does what a statement does with the object. Blocks.
using ParallelObject = std::function<void(ParallelVerb verb, Site site)>;

// Sends nothing. Returns nothing for an object of another kind, and for one of a group that the rank does not belong
// to. Both are borrowed for the lifetime of the result.
ParallelObject make_parallel_object(RankFrame& frame, const ObjectSpec& object);

}  // namespace rollcall::scenario
