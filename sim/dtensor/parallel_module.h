#pragma once

// ParallelModule: layers that parallelize_module has parallelized over one dimension of a mesh (torch/distributed/
// tensor/parallel/style.py), and what they cost: which collectives forward and backward issue, and of which size.
// The layers compute nothing.
//
//   ParallelModule mlp(tp, {{2, 4096, 1024}}, {
//       {.style = ParallelStyle::colwise, .in_features = 1024, .out_features = 4096},
//       {.style = ParallelStyle::rowwise, .in_features = 4096, .out_features = 1024}});
//   mlp.forward();   // all_reduce
//   mlp.backward();  // all_reduce

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/site.h"
#include "sim/c10d/process_group.h"
#include "sim/dtensor/placement.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

enum class ParallelStyle : std::uint8_t {
  colwise,         // ColwiseParallel of an nn.Linear, or nn.Embedding
  rowwise,         // RowwiseParallel
  sequence,        // SequenceParallel: of a norm, whose parameters stay whole
  prepare_input,   // PrepareModuleInput
  prepare_output,  // PrepareModuleOutput
};

struct ParallelLayer {
  ParallelStyle style = ParallelStyle::colwise;
  std::int64_t in_features = 1;  // of an embedding: num_embeddings; of a norm: its width
  std::int64_t out_features = 1;
  bool has_bias = true;
  bool is_embedding = false;
  int count = 1;  // the number of layers side by side with the same input, like wq, wk and wv
  // Absent: the style's own.
  std::optional<Placement> input_layouts{};
  std::optional<Placement> output_layouts{};
  std::optional<Placement> desired_input_layouts{};   // prepare_input
  std::optional<Placement> desired_output_layouts{};  // prepare_output
  std::optional<bool> use_local_output{};
  int sequence_dim = 1;  // sequence
};

struct ParallelInput {
  Shape shape{1};  // what a rank passes in: its own part
  Dtype dtype = Dtype::float32;
  bool requires_grad = true;
};

class ParallelModule {
 public:
  // group: of the mesh's dimension. Throws NotImplementedError for layers whose layouts do not fit together as their
  // styles say: DTensor would redistribute their inputs automatically.
  ParallelModule(ProcessGroup group, const ParallelInput& input, std::vector<ParallelLayer> layers);

  // parallelize_module: the group's first rank scatters and broadcasts the parameters. Blocks.
  void parallelize(Site site = Site::here());
  void forward(Site site = Site::here());
  void backward(Site site = Site::here());
  // An optimizer's step: gradients that are partial sums, those of norms, are reduced when they are first used.
  void step(Site site = Site::here());

  const ProcessGroup& group() const { return group_; }

 private:
  // A collective, with the tensors that it uses every time.
  struct Exchange {
    OpKind kind = OpKind::all_reduce;
    Tensor input;
    Tensor output;
  };
  class Planner;

  void run(const std::vector<Exchange>& exchanges, Site site) const;

  ProcessGroup group_;
  ParallelInput input_;
  std::vector<ParallelLayer> layers_;
  std::vector<Exchange> forward_;
  std::vector<Exchange> backward_;
  std::vector<Exchange> step_;
};

}  // namespace rollcall
