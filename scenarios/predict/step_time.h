#pragma once

// Predicts how long a training step of a transformer takes, and what memory it needs, before there is a cluster.
//
// Every rank of the pipeline is a rank of the simulator, and represents all GPUs that do the same: those of its tensor
// and data parallel groups. So a collective of these groups starts on all members at once, and is a kernel on a stream
// that takes as long as the call takes in a group of that size, on that many nodes. Messages between stages are sent.

#include <string>
#include <vector>

#include "scenarios/predict/transformer.h"
#include "sim/cost/group_cost.h"

namespace rollcall::predict {

struct StepQuestion {
  Transformer model;
  Layout layout;
  cost::Cluster cluster;           // its GPUs per node count, not its nodes
  const cost::Gpu* gpu = nullptr;  // instead of the cluster's own
  double slowest = 1;              // one rank's kernels take this many times as long
};

// How a stage's GPU spends its step. The parts add up to the step.
struct StageTime {
  Duration compute = 0;
  Duration recompute = 0;
  Duration optimizer = 0;
  Duration tensor = 0;    // collectives of tensor parallel that nothing hides
  Duration context = 0;   // likewise, of context parallel
  Duration gathers = 0;   // of parameters
  Duration reduces = 0;   // of gradients
  Duration pipeline = 0;  // waiting for other stages: the bubble, and messages
};

struct Holder {
  std::string what;
  std::int64_t bytes = 0;
};
struct StageMemory {
  std::vector<Holder> holders;  // largest first
  std::int64_t bytes() const;
};

struct StepPrediction {
  Duration step = 0;
  std::vector<StageTime> stages;    // by pipeline rank
  std::vector<StageMemory> memory;  // likewise
  std::int64_t tokens = 0;          // per step, all GPUs
  int gpus = 1;
  std::int64_t memory_there = 0;  // per GPU
  double model_flops = 0;         // per token, causal
  double peak = 0;                // flops per second of a GPU, bfloat16

  double tokens_per_second_per_gpu() const;
  double utilization() const;  // MFU
  bool fits() const;
};

// Tokens of all GPUs together, in one step.
std::int64_t tokens_of(const StepQuestion& question);

// Throws std::invalid_argument, with the reason, if the layout does not fit the model or the cluster's nodes, or the
// GPU is unknown.
StepPrediction predict_step(const StepQuestion& question);

// The GPU that counts; null if unknown.
const cost::Gpu* gpu_of(const StepQuestion& question);

std::string step_text(const StepQuestion& question, const StepPrediction& prediction);
std::string step_json(const StepQuestion& question, const StepPrediction& prediction);

// The question with a change; the first variant is the question itself.
struct StepVariant {
  std::string name;
  StepPrediction prediction;
  bool is_straggler = false;  // one rank is slower than the others, and all wait for it
  double lost = 0;            // GPU seconds per step that this costs, over all GPUs
};
// `words`: those of layouts and models, and cluster=NAME, already found; slow=5% and longer=5%, for one rank's kernels
// and for its sequences. Throws std::invalid_argument.
StepVariant predict_variant(StepQuestion question, std::string_view words);

}  // namespace rollcall::predict
