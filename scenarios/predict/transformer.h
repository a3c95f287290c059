#pragma once

// A transformer by its sizes, its layout over GPUs, and the work that one of its layers is for one GPU.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/roofline.h"
#include "sim/pipeline/plan.h"

namespace rollcall::predict {

struct Transformer {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t vocab = 0;
  std::int64_t sequence = 0;
  bool gated = false;  // like Llama: three matrices in the MLP, RMSNorm, rotary positions; else like GPT
  bool tied = false;   // embedding and head are one matrix

  std::int64_t head_size() const { return hidden / heads; }
  std::int64_t layer_parameters() const;
  std::int64_t embedding_parameters() const { return vocab * hidden; }
  std::int64_t parameters() const;
  // Flops of one token, forward and backward, without recomputing: 6 for every parameter in a product, and attention.
  // `causal`: half of every row of attention is masked and not counted.
  double model_flops(bool causal) const;
};

// "llama3-8b", "gpt3-175b". Null for an unknown name.
const Transformer* find_transformer(std::string_view name);
std::vector<std::string_view> transformer_names();

// Computed again in backward, because the result was not kept.
enum class Recompute : std::uint8_t {
  none,
  selective,  // torchtitan's "op": everything but every second matrix product and attention
  attention,  // Megatron's "selective": attention alone
  full,       // everything
};
enum class Sharding : std::uint8_t {
  replicas,   // DDP: an all_reduce of gradients
  optimizer,  // ZeRO 1, Megatron's distributed optimizer: a reduce_scatter, and a gather of new parameters
  full,       // FSDP2
};

struct Layout {
  int dp = 1;
  int cp = 1;
  int tp = 1;
  int pp = 1;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int stages = 1;        // per rank
  int microbatches = 1;  // per step, for each replica
  int microbatch = 1;    // sequences
  Sharding sharding = Sharding::full;
  Recompute recompute = Recompute::none;
  bool float8 = false;  // in the products of layers; the head stays in bfloat16
  bool fused = true;    // pointwise operators run together: torch.compile, or Megatron's own kernels
  bool flash = true;    // attention without a matrix of scores in memory
  bool sequence_parallel = true;
  bool overlaps_tp = false;  // a collective of tensor parallel runs alongside its product
  bool overlaps_dp = true;   // gradients are reduced while backward continues
  int gradient_bytes = 4;    // of each gradient that is reduced

  int gpus() const { return dp * cp * tp * pp; }
};

// Work of one GPU: a layer's, for one microbatch.
struct LayerWork {
  std::vector<cost::KernelWork> forward;
  std::vector<cost::KernelWork> backward;
  std::vector<cost::KernelWork> recomputed;
};
LayerWork layer_work(const Transformer& model, const Layout& layout);
// The part of it that is attention, without its products with weights.
LayerWork attention_work(const Transformer& model, const Layout& layout);
// The embedding's lookup and its gradient; the head, with the loss.
LayerWork embedding_work(const Transformer& model, const Layout& layout);
LayerWork head_work(const Transformer& model, const Layout& layout);
// The bytes that tensor parallel's collectives carry: activations of one microbatch.
std::int64_t activation_bytes(const Transformer& model, const Layout& layout);

}  // namespace rollcall::predict
