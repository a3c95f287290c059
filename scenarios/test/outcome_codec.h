#pragma once

// Converts a TestOutcome to bytes and back, to pass it from one process to another.

#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

std::string encode(const viz::TestOutcome& outcome);
// The bytes must be encode()'s.
viz::TestOutcome decode_outcome(const std::string& bytes);

}  // namespace rollcall::scenario
