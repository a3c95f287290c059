#pragma once

// The cases that failed last time, for --lf: stored in .rollcall/ of the current folder, like pytest's cache.

#include <set>
#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

// Returns addresses; empty if nothing failed, or the file cannot be read.
std::set<std::string> last_failed();

// Adds and removes cases according to this run; those that did not run stay. Throws viz::OutputError. Nothing is
// written if nothing has ever failed.
void remember_failures(const viz::TestRun& run);

}  // namespace rollcall::scenario
