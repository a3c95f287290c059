#pragma once

// A TestOutcome as bytes, for the way from one process to another.

#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::scenario {

std::string encode(const viz::TestOutcome& outcome);
// The bytes must be encode()'s.
viz::TestOutcome decode_outcome(const std::string& bytes);

}  // namespace rollcall::scenario
