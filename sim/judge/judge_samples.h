#pragma once

// Samplers that do not partition a dataset. Nothing hangs then, and nothing is raised.

#include <optional>

#include "sim/report/sample_use.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// Returns a finding if ranks shuffle with different seeds and so see each other's samples; null otherwise. The samples
// that a sampler repeats to give every rank the same number are not a mistake.
std::optional<Verdict> judge_samples(const SampleUse& use);

}  // namespace rollcall::check
