#pragma once

// How long a step of a recorded script takes on a cluster, where that time goes, and what it takes of each GPU.
//
// A step ends with the optimizer's kernels: that is how the recorder names them. What comes before the first such end
// is the job's beginning, and counts only where there is no second. The second step is left out, too, where there are
// more: DDP lays out its buckets anew there, once (torch/csrc/distributed/c10d/reducer.cpp, rebuild_buckets).

#include <optional>
#include <string>
#include <vector>

#include "sim/cost/topology.h"
#include "sim/report/report.h"
#include "traces/formats/script_record.h"

namespace rollcall::predict {

// Communication that no computing of the same rank hides, by the call that it comes from. Mean of the ranks, per step.
struct ExposedCall {
  std::string what;  // "all_reduce at train.py:14"
  Duration transfer = 0;
  Duration waiting = 0;  // for ranks that come later

  Duration exposed() const { return transfer + waiting; }
};

struct ScriptPrediction {
  Duration step = 0;       // of the rank that takes longest
  std::int64_t steps = 0;  // that it is the mean of; 0: there is no whole step, and `step` is the whole run
  std::int64_t left_out = 0;         // steps before these
  Duration compute = 0;              // mean of the ranks, per step, like what follows
  Duration idle = 0;                 // neither computing nor communicating
  std::vector<ExposedCall> exposed;  // the largest first
  double flops = 0;                  // of one rank, mean
  double measured_flops = 0;         // of them, in kernels whose time was measured
  double kernels = 0;                // that one rank's host launches, mean
  RankSet slowest;                   // they compute longest; empty: all alike
  Duration slowest_compute = 0;

  Duration exposed_time() const;
};

// The report needs a timeline.
ScriptPrediction script_prediction(const Report& report, const traces::ScriptRecord& record);

// The ranks whose tensors take most of their GPUs, as recorded. Null: nothing was recorded.
const traces::ScriptRank* largest_rank(const traces::ScriptRecord& record);
// Does a rank need more than its GPU has? False where nobody knows.
bool exceeds_memory(const traces::ScriptRecord& record, const cost::Cluster& cluster);

struct PredictedScript {
  const ScriptPrediction& prediction;
  const Report& report;
  const traces::ScriptRecord& record;
  const cost::Cluster& cluster;
  std::optional<std::int64_t> tokens_per_step{};
};
std::string text_of(const PredictedScript& script);
std::string json_of(const PredictedScript& script);

}  // namespace rollcall::predict
