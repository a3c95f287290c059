#pragma once

// The floor: what the same collectives cost on Boost.Fiber when nothing is simulated. Ranks add to a
// counter; the last to arrive wakes the others. No matching, no judging, no time, no tensors.
//
// It is the fastest arrangement of Boost.Fiber we know of: one thread, a scheduling algorithm that is
// a ring of (context, frame address) and prefetches what the switch after next will touch, stacks
// from one lazily backed mapping. The engine is measured as a multiple of it, in the same process,
// because a ratio survives a change of machine and nanoseconds do not.

#include <cstdint>

#include "bench/measure.h"

namespace rollcall::bench {

Sample measure_fiber_floor(Rank ranks, std::int64_t collectives);

}  // namespace rollcall::bench
