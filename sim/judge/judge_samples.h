#pragma once

// Samplers that do not cut a data set into parts. Nothing hangs then, and nothing is raised.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/report/sample_use.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

// A finding where ranks shuffle with different seeds and so see each other's samples; none otherwise. What a sampler
// repeats to make ranks even is no mistake.
// `seeds`: by rank; empty where they are all the same.
std::optional<Verdict> judge_samples(const SampleUse& use, const std::vector<std::int64_t>& seeds);

}  // namespace rollcall::check
