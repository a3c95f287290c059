#pragma once

// What failed last time, for --lf: kept in .rollcall/ of the current folder, as pytest keeps its cache.

#include <set>
#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

// Addresses; empty when nothing failed, or nothing is known. What cannot be read is not known.
std::set<std::string> last_failed();

// What this run adds and removes; what it did not run stays. Throws viz::OutputError. Nothing is written where nothing
// has ever failed.
void remember_failures(const viz::TestRun& run);

}  // namespace rollcall::scenario
