#include "scenarios/predict/transformer.h"

#include <algorithm>
#include <array>

namespace rollcall::predict {

namespace {

using cost::KernelKind;
using cost::KernelWork;
using cost::Precision;

// meta-llama/llama-models, models/sku_list.py; GPT: Brown et al., arXiv 2005.14165, table 2.1, with the vocabulary and
// sequence of Megatron-LM's runs.
const std::array<Transformer, 8>& presets() {
  static const std::array<Transformer, 8> all{{
      {"gpt-1.7b", 24, 2304, 9216, 24, 24, 51200, 2048, false, true},
      {"gpt-7.5b", 36, 4096, 16384, 32, 32, 51200, 2048, false, true},
      {"gpt3-175b", 96, 12288, 49152, 96, 96, 51200, 2048, false, true},
      {"gpt-1t", 128, 25600, 102400, 160, 160, 51200, 2048, false, true},
      {"llama3-8b", 32, 4096, 14336, 32, 8, 128256, 8192, true, false},
      {"llama3-70b", 80, 8192, 28672, 64, 8, 128256, 8192, true, false},
      {"llama3-405b", 126, 16384, 53248, 128, 8, 128256, 8192, true, false},
      {"llama2-7b", 32, 4096, 11008, 32, 32, 32000, 4096, true, false},
  }};
  return all;
}

constexpr double half = 2;  // bytes of bfloat16

// The kernels of a layer have two shapes: a product, and a pass over memory.
class Work {
 public:
  Work(const Transformer& model, const Layout& layout)
      : model_(model),
        layout_(layout),
        tokens_(static_cast<double>(layout.microbatch) * static_cast<double>(model.sequence) / layout.cp) {}

  double tokens() const { return tokens_; }

  // [tokens, k] by [k, n], and its two products in backward.
  void product(LayerWork& work, double k, double n, bool is_linear) const {
    const bool is_float8 = layout_.float8 && is_linear;
    const auto once = [&](double m, double inner, double wide) {
      return KernelWork{.flops = 2 * m * inner * wide,
                        .bytes = half * (m * inner + inner * wide + m * wide),
                        .precision = is_float8 ? Precision::float8 : Precision::half,
                        .kind = KernelKind::matmul};
    };
    work.forward.push_back(once(tokens_, k, n));
    work.backward.push_back(once(tokens_, n, k));
    work.backward.push_back(once(k, tokens_, n));
    if (is_float8) {
      // The greatest value is found, then everything is cast: 2 bytes read, 2 read and 1 written.
      pass(work.forward, 5 * (tokens_ * k + k * n));
      pass(work.backward, 5 * (tokens_ * n + tokens_ * k + k * n));
    }
  }

  static void pass(std::vector<KernelWork>& list, double bytes) {
    list.push_back({.bytes = bytes, .kind = KernelKind::elementwise});
  }

  void attention(LayerWork& work) const {
    const double heads = static_cast<double>(model_.heads) / layout_.tp;
    const double keys = static_cast<double>(model_.sequence);
    const double all = 4 * tokens_ * keys * heads * static_cast<double>(model_.head_size());
    if (layout_.flash) {  // skips masked parts; backward has five products for forward's two
      work.forward.push_back({.flops = all / 2, .kind = KernelKind::attention});
      work.backward.push_back({.flops = all / 2 * 2.5, .kind = KernelKind::attention});
      merge_parts(work, heads);
      return;
    }
    // Scores are written, normalized, subjected to dropout, and read: 10 passes forward, twice as many backward.
    const double scores = half * tokens_ * keys * heads;
    work.forward.push_back({.flops = all, .kind = KernelKind::matmul});
    pass(work.forward, 5 * scores);
    work.backward.push_back({.flops = 2 * all, .kind = KernelKind::matmul});
    pass(work.backward, 8 * scores);
  }

  // Context parallel attends to the keys of one rank after the other. Every part of the result becomes float32 and is
  // merged into the sum in four operators, and so is the gradient in one (PyTorch 2.14, torch/distributed/tensor/
  // experimental/_context_parallel/_attention.py, _SDPAMerger). Half of the parts are half as long.
  void merge_parts(LayerWork& work, double heads) const {
    if (layout_.cp > 1) {
      const double parts = 0.75 * layout_.cp * tokens_ * heads * static_cast<double>(model_.head_size());
      pass(work.forward, 38 * parts);
      pass(work.backward, 10 * parts);
    }
  }

  // Passes over the residual stream and the MLP's inside, in values of 2 bytes. Fused operators read and write once;
  // unfused ones normalize and rotate in float32 and write every step (torchtitan's model without torch.compile).
  double pointwise_values() const {
    const auto hidden = static_cast<double>(model_.hidden);
    const double ffn = static_cast<double>(model_.ffn) / layout_.tp;
    const double in_stream = layout_.sequence_parallel ? hidden / layout_.tp : hidden;
    const double heads = hidden / layout_.tp;
    if (!model_.gated) {  // two norms, two residual sums with dropout and bias, a gelu
      return (layout_.fused ? 10 : 24) * in_stream + (layout_.fused ? 2 : 6) * ffn;
    }
    const double norms = layout_.fused ? 2 * 3 : 2 * 18 + 6;  // with the residual sums
    const double rotary = layout_.fused ? 2.5 : 12.5;
    const double gate = layout_.fused ? 3 : 5;
    return norms * in_stream + (rotary + 2.5) * heads + gate * ffn;
  }

 private:
  const Transformer& model_;
  const Layout& layout_;
  double tokens_;
};

void append(std::vector<KernelWork>& list, const std::vector<KernelWork>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

std::int64_t Transformer::layer_parameters() const {
  const std::int64_t attention = hidden * head_size() * (2 * heads + 2 * kv_heads);
  return attention + (gated ? 3 : 2) * hidden * ffn;
}

std::int64_t Transformer::parameters() const {
  return layers * layer_parameters() + (tied ? 1 : 2) * embedding_parameters();
}

double Transformer::model_flops(bool causal) const {
  const double products = static_cast<double>(layers) * static_cast<double>(layer_parameters()) +
                          static_cast<double>(embedding_parameters());
  const double attention =
      12 * static_cast<double>(layers) * static_cast<double>(hidden) * static_cast<double>(sequence);
  return 6 * products + (causal ? attention / 2 : attention);
}

const Transformer* find_transformer(std::string_view name) {
  const auto* found = std::ranges::find(presets(), name, &Transformer::name);
  return found == presets().end() ? nullptr : found;
}

std::vector<std::string_view> transformer_names() {
  std::vector<std::string_view> names;
  for (const Transformer& each : presets()) {
    names.emplace_back(each.name);
  }
  return names;
}

LayerWork attention_work(const Transformer& model, const Layout& layout) {
  LayerWork attention;
  Work(model, layout).attention(attention);
  return attention;
}

LayerWork layer_work(const Transformer& model, const Layout& layout) {
  const Work work(model, layout);
  const auto hidden = static_cast<double>(model.hidden);
  const double heads = static_cast<double>(model.heads * model.head_size()) / layout.tp;
  const double kv = static_cast<double>(model.kv_heads * model.head_size()) / layout.tp;
  const double ffn = static_cast<double>(model.ffn) / layout.tp;
  LayerWork products;
  work.product(products, hidden, heads + 2 * kv, true);
  work.product(products, heads, hidden, true);
  work.product(products, hidden, model.gated ? 2 * ffn : ffn, true);
  work.product(products, ffn, hidden, true);
  LayerWork attention = attention_work(model, layout);
  LayerWork pointwise;
  const double bytes = half * work.tokens() * work.pointwise_values();
  Work::pass(pointwise.forward, bytes);
  Work::pass(pointwise.backward, 2 * bytes);

  LayerWork layer;
  for (const LayerWork* part : {&products, &attention, &pointwise}) {
    append(layer.forward, part->forward);
    append(layer.backward, part->backward);
  }
  switch (layout.recompute) {
    case Recompute::none:
      break;
    case Recompute::selective:
      for (KernelWork again : products.forward) {
        again.flops /= 2;
        again.bytes /= 2;
        layer.recomputed.push_back(again);
      }
      append(layer.recomputed, pointwise.forward);
      break;
    case Recompute::attention:
      layer.recomputed = attention.forward;
      break;
    case Recompute::full:
      layer.recomputed = layer.forward;
      break;
  }
  return layer;
}

LayerWork embedding_work(const Transformer& model, const Layout& layout) {
  const Work work(model, layout);
  const double bytes = half * work.tokens() * static_cast<double>(model.hidden);
  LayerWork embedding;
  embedding.forward.push_back({.bytes = 2 * bytes, .kind = KernelKind::embedding});
  embedding.backward.push_back({.bytes = 4 * bytes, .kind = KernelKind::embedding});
  return embedding;
}

LayerWork head_work(const Transformer& model, const Layout& layout) {
  const Work work(model, layout);
  const double vocab = static_cast<double>(model.vocab) / layout.tp;
  LayerWork head;
  work.product(head, static_cast<double>(model.hidden), vocab, false);
  // Logits become float32; the loss reads and writes them, and so does its gradient.
  const double logits = work.tokens() * vocab;
  Work::pass(head.forward, (layout.fused ? 6 : 18) * logits);
  Work::pass(head.backward, (layout.fused ? 6 : 14) * logits);
  return head;
}

std::int64_t activation_bytes(const Transformer& model, const Layout& layout) {
  return static_cast<std::int64_t>(half) * layout.microbatch * (model.sequence / layout.cp) * model.hidden;
}

}  // namespace rollcall::predict
