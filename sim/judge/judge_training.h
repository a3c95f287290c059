#pragma once

// Ranks that each trained a model of their own, without communicating or with replicas that drifted apart. Nothing
// hangs, and no call is wrong.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/verdict.h"

namespace rollcall::check {

// What the optimizers of a rank did.
struct RankTraining {
  Rank rank = 0;
  std::int64_t parameters = 0;  // that were stepped
  std::int64_t steps = 0;
  std::string digest;  // of the parameters' values at the end
  std::string site;    // of the step: "train.py:61"
};

// `ranks`: those that trained and sent nothing that others could have trained with. `on_cpu`: no rank had a GPU.
// Null if all ranks have the same parameters at the end.
std::optional<Verdict> judge_training(const std::vector<RankTraining>& ranks, bool on_cpu);

// `ranks`: the replicas of one model in DistributedDataParallel, and where it was wrapped. Null if they are equal.
std::optional<Verdict> judge_replicas(const std::vector<RankTraining>& ranks);

}  // namespace rollcall::check
