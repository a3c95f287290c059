#pragma once

// Predicts how long a step of a recorded script takes on a cluster, where that time goes, and how much memory of each
// GPU it takes.
//
// A step ends with the optimizer's kernels, which the recorder names that way. Everything before the first such end is
// the job's beginning, and counts only if there is no second one. The second step is left out as well if there are
// more: DDP lays out its buckets anew there, once (torch/csrc/distributed/c10d/reducer.cpp, rebuild_buckets).

#include <optional>
#include <string>
#include <vector>

#include "sim/cost/topology.h"
#include "sim/report/report.h"
#include "traces/formats/script_record.h"

namespace rollcall::predict {

// Communication that no computing of the same rank hides, by the call that caused it. Mean over the ranks, per step.
struct ExposedCall {
  std::string what;  // "all_reduce at train.py:14"
  Duration transfer = 0;
  Duration waiting = 0;  // for ranks that arrive later

  Duration exposed() const { return transfer + waiting; }
};

struct ScriptPrediction {
  Duration step = 0;       // of the slowest rank
  std::int64_t steps = 0;  // number of steps averaged; 0: there is no whole step, and `step` is the whole run
  std::int64_t left_out = 0;         // steps before these
  Duration compute = 0;              // mean over the ranks, per step, as are the following
  Duration idle = 0;                 // neither computing nor communicating
  std::vector<ExposedCall> exposed;  // the largest first
  double flops = 0;                  // per rank, mean
  double measured_flops = 0;         // part of `flops`, in kernels whose time was measured
  double kernels = 0;                // launched by one rank's host, mean
  RankSet slowest;                   // the ranks that compute longest; empty if all are alike
  Duration slowest_compute = 0;

  Duration exposed_time() const;
};

// The report needs a timeline.
ScriptPrediction script_prediction(const Report& report, const traces::ScriptRecord& record);

// The rank whose tensors take the most GPU memory, as recorded. Null if nothing was recorded.
const traces::ScriptRank* largest_rank(const traces::ScriptRecord& record);
// True if a rank needs more memory than its GPU has. False if unknown.
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
