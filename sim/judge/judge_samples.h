#pragma once

// Samplers that do not cut a data set into parts. Nothing hangs then, and nothing is raised.

#include <optional>

#include "sim/report/sample_use.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// A finding where ranks shuffle with different seeds and so see each other's samples; none otherwise. What a sampler
// repeats to make ranks even is no mistake.
std::optional<Verdict> judge_samples(const SampleUse& use);

}  // namespace rollcall::check
