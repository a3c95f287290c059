#pragma once

// Runs the same program simulated and on real Gloo processes, and compares the facts.

#include <functional>
#include <string>
#include <vector>

#include "scenarios/compare/claims.h"
#include "sim/engine/simulate.h"

namespace rollcall::test {

// True if this build has Gloo. If not, a message says so once, and tests on real ranks have nothing to do.
bool has_gloo();

// Returns the claims that differ, one per line; empty if the simulation predicted the real run.
std::string differences(const std::string& name, const sim::Options& options, const sim::Program& program);

struct NamedRun {
  std::string name;
  sim::Options options;
  sim::Program program;
};

// The same for many runs, several at a time: ranks that hang take time, but no processor.
std::string differences(const std::vector<NamedRun>& runs);

// True if a simulated rank waits forever, or until it is timed out.
bool hangs(sim::Options options, const sim::Program& program);

}  // namespace rollcall::test
