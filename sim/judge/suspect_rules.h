#pragma once

// Rules that tell which of two sides has left the common path, from the programs of both. Each looks for one
// habit of real programs: they repeat themselves, they vote with small tensors, they save in barriers.

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

// The side that is at fault, and why; no side where the programs do not tell.
struct Opinion {
  const Side* side = nullptr;
  std::string reason;
};

// Two sides that met with different calls.
Opinion opinion_on_mismatch(const Side& a, const Side& b);
// Two sides that wait for each other.
Opinion opinion_on_cycle(const Side& a, const Side& b);
// Is this a small call of a kind that its side has not made before?
bool is_on_own_path(const Side& side);
// Has the side made a call like this one before, on whatever group?
bool came_by(const Side& side, const ProgramCall& call);

// "all_reduce in gradients".
std::string name_of(const ProgramCall& call);

}  // namespace rollcall::check
