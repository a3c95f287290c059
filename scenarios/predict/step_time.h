#pragma once

// How long a training step of a transformer takes, and what memory it needs, before there is a cluster.
//
// Every stage of the pipeline is a rank of the simulator, and stands for all GPUs that do the same: those of its tensor
// and data parallel groups. So a collective of these groups starts on all members at once, and is a kernel on a stream
// that takes what the call takes in a group of that size, on that many nodes. What goes from stage to stage is sent.

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
  double efficiency = 1;           // of the calibrated user: measured speed over predicted speed of kernels
  double slowest = 1;              // one rank's kernels take this many times as long
};

// What a stage's GPU spends its step on. They add up to the step.
struct StageTime {
  Duration compute = 0;
  Duration recompute = 0;
  Duration optimizer = 0;
  Duration tensor = 0;    // collectives of tensor parallel that nothing hides
  Duration context = 0;   // and of context parallel
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
  std::vector<StageTime> stages;    // by rank of the pipeline
  std::vector<StageMemory> memory;  // likewise
  std::int64_t tokens = 0;          // of a step, all GPUs
  int gpus = 1;
  std::int64_t memory_there = 0;  // of a GPU
  double model_flops = 0;         // of a token, causal
  double peak = 0;                // flops per second of a GPU, bfloat16

  double tokens_per_second_per_gpu() const;
  double utilization() const;  // MFU
  bool fits() const;
};

// Of all GPUs together, in one step.
std::int64_t tokens_of(const StepQuestion& question);

// Throws std::invalid_argument, with the reason, where the layout does not fit the model or the cluster's nodes, or
// nothing is known of the GPU.
StepPrediction predict_step(const StepQuestion& question);

// The GPU that counts; null where nothing is known.
const cost::Gpu* gpu_of(const StepQuestion& question);

std::string step_text(const StepQuestion& question, const StepPrediction& prediction);
std::string step_json(const StepQuestion& question, const StepPrediction& prediction);

// The question with something changed; the first one is the question itself.
struct StepVariant {
  std::string name;
  StepPrediction prediction;
  bool is_straggler = false;  // one rank is slower than the others, and all wait for it
  double lost = 0;            // by that: seconds of all GPUs in each step
};
// `words`: of layouts and models, and cluster=NAME's, already found; slow=5% and longer=5%, of one rank's kernels and
// of its sequences. Throws std::invalid_argument.
StepVariant predict_variant(StepQuestion question, std::string_view words);

}  // namespace rollcall::predict
