#pragma once

// .rollcall of the current folder: what rollcall remembers from one run to the next, like pytest's cache. A repository
// may keep rollcall's wheel there for its CI (starter/github.yml), so git is told to ignore only what rollcall writes.

#include <set>
#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

// Writes a file in this folder, which is made if it does not exist. Throws viz::OutputError.
void write_state(const std::string& path, const std::string& text);

// The addresses of the cases that failed last time, for --lf. Empty if nothing failed, or the file cannot be read.
std::set<std::string> last_failed();

// Adds and removes cases according to this run; those that did not run stay. Throws viz::OutputError. Nothing is
// written if nothing has ever failed.
void remember_failures(const viz::TestRun& run);

}  // namespace rollcall::scenario
