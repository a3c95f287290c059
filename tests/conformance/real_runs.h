#pragma once

// The same program simulated and on real Gloo processes, as facts to be compared.

#include <functional>
#include <string>
#include <vector>

#include "scenarios/compare/claims.h"
#include "sim/engine/simulate.h"

namespace rollcall::test {

// True when this build has Gloo; says so, once, where it has not. Tests on real ranks then have nothing to do.
bool has_gloo();

// The claims that differ, one a line; empty when the simulation predicted the real run.
std::string differences(const std::string& name, const sim::Options& options, const sim::Program& program);

struct NamedRun {
  std::string name;
  sim::Options options;
  sim::Program program;
};

// The same of many, several at a time: ranks that hang take time, but no processor.
std::string differences(const std::vector<NamedRun>& runs);

// Whether a simulated rank waits forever, or until it is timed out.
bool hangs(sim::Options options, const sim::Program& program);

}  // namespace rollcall::test
