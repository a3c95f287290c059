#pragma once

// Rules that decide from the programs of two sides which one has left the common path. Each looks for one
// habit of real programs: they repeat themselves, they vote with small tensors, they save between barriers.

#include <span>
#include <string>
#include <vector>

#include "sim/judge/suspects.h"

namespace rollcall::check {

using Calls = std::span<const ProgramCall>;

// One side of a disagreement: some ranks, the call they are in, and the program of one of them around it.
struct Side {
  RankSet ranks;
  const ProgramCall* call = nullptr;
  Calls before;
  Calls after;
};

// The side that is at fault, and why; null if the programs do not tell.
struct Opinion {
  const Side* side = nullptr;
  std::string reason;
};

// Two sides that met with different calls.
Opinion opinion_on_mismatch(const Side& a, const Side& b);
// Two sides that wait for each other.
Opinion opinion_on_cycle(const Side& a, const Side& b);
// True if the side's call is small and of a kind that the side has not made before.
bool is_on_own_path(const Side& side);
// True if the side has made a call like this one before, on any group.
bool came_by(const Side& side, const ProgramCall& call);

// "all_reduce in gradients".
std::string name_of(const ProgramCall& call);
// With its group, or its place, where a sentence names both and one name would be that of the other.
std::string name_of(const ProgramCall& call, const ProgramCall& beside);

}  // namespace rollcall::check
