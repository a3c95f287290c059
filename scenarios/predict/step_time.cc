#include "scenarios/predict/step_time.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "sim/pipeline/schedule.h"
#include "viz/rows/activity.h"

namespace rollcall::predict {

namespace {

using cost::KernelWork;

// A training step reaches this share of what the best shape of a product, or attention, reaches alone: its shapes are
// not the best ones, and the GPU is hot and near its power limit. Chosen on the rows of A100 (docs/step-time.md).
constexpr double reached_in_training = 0.77;

// This share of a collective that runs in pieces alongside its product is exposed all the same: the first piece has
// nothing to hide behind, copies share memory with the product, and pieces of a product are slower than the whole.
// Chosen so that asynchronous tensor parallelism gains as much as torchtitan measured (docs/step-time.md).
constexpr double seen_of_overlapped = 0.5;

// Memory for messages at a pipeline's borders, and for other parts of a step that are not modeled here: two allocations
// of NCCL, CUDA's context, and fragments.
constexpr std::int64_t gib = std::int64_t{1} << 30;
constexpr std::int64_t context_bytes = 2 * gib;

// The time that one layer takes on one GPU, for one microbatch.
struct PassTimes {
  Duration forward = 0;
  Duration recompute = 0;
  Duration backward = 0;
  Duration forward_tensor = 0;
  Duration recompute_tensor = 0;
  Duration backward_tensor = 0;
  Duration forward_context = 0;
  Duration recompute_context = 0;
  Duration backward_context = 0;
};

constexpr Duration PassTimes::*parts_of_pass[] = {
    &PassTimes::forward,         &PassTimes::recompute,         &PassTimes::backward,
    &PassTimes::forward_tensor,  &PassTimes::recompute_tensor,  &PassTimes::backward_tensor,
    &PassTimes::forward_context, &PassTimes::recompute_context, &PassTimes::backward_context};

PassTimes operator*(PassTimes times, std::int64_t count) {
  for (Duration PassTimes::*part : parts_of_pass) {
    times.*part *= count;
  }
  return times;
}

PassTimes operator+(PassTimes times, const PassTimes& more) {
  for (Duration PassTimes::*part : parts_of_pass) {
    times.*part += more.*part;
  }
  return times;
}

// A group of the job, as NCCL sees it.
class Calls {
 public:
  Calls(const cost::Cluster& cluster, int ranks, int stride) {
    const int per_node = std::max(1, cluster.gpus_per_node / stride);
    const int nodes = (ranks + per_node - 1) / per_node;
    cost::Cluster enough = cluster;
    enough.nodes = std::max(cluster.nodes, nodes);
    if (ranks > 1) {
      cost_.emplace(cost::communicator_of(enough, ranks, nodes));
    }
  }

  // `bytes`: of the whole operation, as nccl-tests counts.
  Duration time(OpKind kind, std::int64_t bytes, bool same_node = true) const {
    if (!cost_ || bytes == 0) {
      return 0;
    }
    const auto prediction =
        cost_->predict({.kind = kind, .bytes = bytes, .dtype = Dtype::bfloat16, .same_node = same_node});
    return prediction ? cost::to_duration(prediction->fitted) : 0;
  }

 private:
  std::optional<cost::GroupCost> cost_;
};

class StepModel {
 public:
  explicit StepModel(const StepQuestion& question)
      : question_(question),
        model_(question.model),
        layout_(question.layout),
        gpu_(gpu_of(question)),
        tensor_(question.cluster, layout_.tp, 1),
        context_(question.cluster, layout_.cp, layout_.tp),
        data_(question.cluster, layout_.dp * layout_.cp, layout_.tp) {
    check();
    layer_ = times_of(layer_work(model_, layout_));
    add_tensor_parallel(layer_);
    add_context_parallel(layer_);
    embedding_ = times_of(embedding_work(model_, layout_));
    head_ = times_of(head_work(model_, layout_));
    const std::int64_t activations = activation_bytes(model_, layout_);
    if (layout_.tp > 1) {  // the embedding's output is reduced; the head's input is gathered
      embedding_.forward_tensor = tensor_.time(OpKind::reduce_scatter_tensor, activations);
      embedding_.backward_tensor = tensor_.time(OpKind::all_gather_into_tensor, activations);
      head_.forward_tensor = embedding_.backward_tensor;
      head_.backward_tensor = embedding_.forward_tensor;
    }
  }

  const Layout& layout() const { return layout_; }
  const cost::Gpu& gpu() const { return *gpu_; }
  const PassTimes& layer() const { return layer_; }

  std::int64_t stage_count() const { return std::int64_t{layout_.pp} * layout_.stages; }
  std::int64_t layers_of(std::int64_t stage) const {
    return model_.layers / stage_count() + (stage < model_.layers % stage_count() ? 1 : 0);
  }
  bool is_first(std::int64_t stage) const { return stage == 0; }
  bool is_last(std::int64_t stage) const { return stage + 1 == stage_count(); }

  // The parts of a stage other than its layers.
  PassTimes ends_of(std::int64_t stage) const {
    return (is_first(stage) ? embedding_ : PassTimes{}) + (is_last(stage) ? head_ : PassTimes{});
  }

  // Parameters of one GPU before sharding over data-parallel ranks: of a layer, and of a stage.
  std::int64_t layer_parameters() const { return model_.layer_parameters() / layout_.tp; }
  std::int64_t ends_parameters(std::int64_t stage) const {
    return ((is_first(stage) ? 1 : 0) + (is_last(stage) && !(model_.tied && layout_.pp == 1) ? 1 : 0)) *
           model_.embedding_parameters() / layout_.tp;
  }
  std::int64_t stage_parameters(std::int64_t stage) const {
    return layers_of(stage) * layer_parameters() + ends_parameters(stage);
  }
  std::int64_t rank_parameters(int rank) const {
    std::int64_t sum = 0;
    for (std::int64_t stage = rank; stage < stage_count(); stage += layout_.pp) {
      sum += stage_parameters(stage);
    }
    return sum;
  }

  int shards() const { return layout_.sharding == Sharding::replicas ? 1 : layout_.dp * layout_.cp; }
  bool gathers() const { return layout_.sharding != Sharding::replicas && shards() > 1; }
  // FSDP keeps parameters between the microbatches of a pipeline, and releases them after forward otherwise.
  bool gathers_again() const { return layout_.sharding == Sharding::full && layout_.pp == 1 && shards() > 1; }

  Duration gather_time(std::int64_t parameters, bool is_layer) const {
    const std::int64_t each = layout_.float8 && is_layer && layout_.sharding == Sharding::full ? 1 : 2;
    return gathers() ? data_.time(OpKind::all_gather_into_tensor, parameters * each) : 0;
  }
  Duration reduce_time(std::int64_t parameters) const {
    if (layout_.dp * layout_.cp == 1) {
      return 0;
    }
    const OpKind kind =
        layout_.sharding == Sharding::replicas ? OpKind::all_reduce : OpKind::reduce_scatter_tensor;
    return data_.time(kind, parameters * layout_.gradient_bytes);
  }
  // Copies that FSDP makes around its collectives: out of the gathered buffer, and into the reduced one.
  Duration copy_time(std::int64_t parameters, double bytes_each) const {
    return layout_.sharding == Sharding::full ? pass_time(static_cast<double>(parameters) * bytes_each) : 0;
  }
  Duration optimizer_time(int rank) const {
    // Adam reads a parameter, its gradient, and two moments, and writes three of them, in float32; the norm of all
    // gradients reads them once, and scaling them reads and writes them.
    return pass_time(static_cast<double>(rank_parameters(rank)) / shards() * (28 + 12));
  }

  std::int64_t message_bytes() const { return activation_bytes(model_, layout_) / layout_.tp; }

  StageMemory memory_of(int rank) const;

 private:
  void check() const {
    if (gpu_ == nullptr) {
      throw std::invalid_argument("nothing is known about the speed of this cluster's GPUs");
    }
    const auto refuse = [](std::string reason) { throw std::invalid_argument(std::move(reason)); };
    if (model_.layers < stage_count()) {
      refuse(fmt::format("{} layers do not fill {} stages", model_.layers, stage_count()));
    }
    if (model_.heads % layout_.tp != 0) {
      refuse(fmt::format("{} heads cannot be divided by tp={}", model_.heads, layout_.tp));
    }
    if (model_.sequence % layout_.cp != 0) {
      refuse(fmt::format("a sequence of {} cannot be divided by cp={}", model_.sequence, layout_.cp));
    }
  }

  Duration time_of(const KernelWork& work) const {
    const auto alone = cost::time_of(*gpu_, work);
    if (!alone) {
      throw std::invalid_argument(fmt::format("{} has no units for this type", gpu_->name));
    }
    const bool is_product = work.kind == cost::KernelKind::matmul || work.kind == cost::KernelKind::attention;
    const double slower = is_product ? 1 / reached_in_training : 1;
    return static_cast<Duration>(static_cast<double>(*alone) * slower * question_.slowest + 0.5);
  }
  Duration pass_time(double bytes) const {
    return time_of({.bytes = bytes, .kind = cost::KernelKind::elementwise});
  }
  Duration time_of(const std::vector<KernelWork>& list) const {
    Duration sum = 0;
    for (const KernelWork& work : list) {
      sum += time_of(work);
    }
    return sum;
  }
  PassTimes times_of(const LayerWork& work) const {
    PassTimes times;
    times.forward = time_of(work.forward);
    times.recompute = time_of(work.recomputed);
    times.backward = time_of(work.backward);
    return times;
  }

  // Two pairs of collectives in forward and two in backward: a gather before a product, and a reduction after the next
  // one.
  void add_tensor_parallel(PassTimes& layer) const {
    if (layout_.tp == 1) {
      return;
    }
    const std::int64_t bytes = activation_bytes(model_, layout_);
    Duration pair = layout_.sequence_parallel ? tensor_.time(OpKind::all_gather_into_tensor, bytes) +
                                                    tensor_.time(OpKind::reduce_scatter_tensor, bytes)
                                              : tensor_.time(OpKind::all_reduce, bytes);
    if (layout_.overlaps_tp) {
      pair = static_cast<Duration>(static_cast<double>(pair) * seen_of_overlapped);
    }
    layer.forward_tensor = 2 * pair;
    layer.backward_tensor = 2 * pair;
    layer.recompute_tensor = layout_.recompute == Recompute::full || layout_.recompute == Recompute::selective
                                 ? layer.forward_tensor
                                 : 0;
  }

  // As in PyTorch's ring attention (2.14, torch/distributed/tensor/experimental/_context_parallel/_attention.py): keys
  // and values of all ranks are gathered alongside the attention to the rank's own, also when it is recomputed and in
  // backward. Their gradients, in float32, go around the ring alongside the attention to the next part; the last of
  // them has nothing alongside it. Models repeat the keys of grouped heads for each query first.
  void add_context_parallel(PassTimes& layer) const {
    if (layout_.cp == 1) {
      return;
    }
    const std::int64_t values = 2 * std::int64_t{layout_.microbatch} * model_.sequence * model_.heads *
                                model_.head_size() / layout_.tp;
    const LayerWork attention = attention_work(model_, layout_);
    const Duration forward_part = time_of(attention.forward) / layout_.cp;
    const Duration backward_part = time_of(attention.backward) / layout_.cp;
    const Duration gather = context_.time(OpKind::all_gather_into_tensor, 2 * values);
    const bool is_on_node = layout_.tp * layout_.cp <= question_.cluster.gpus_per_node;
    const Duration pass_on = context_.time(OpKind::send, 4 * values / layout_.cp, is_on_node);
    const auto seen = [](Duration call, Duration beside) { return std::max<Duration>(0, call - beside); };
    layer.forward_context = seen(gather, forward_part);
    layer.recompute_context = layout_.recompute == Recompute::full ? layer.forward_context : 0;
    layer.backward_context =
        seen(gather, backward_part) + (layout_.cp - 1) * seen(pass_on, backward_part) + pass_on;
  }

  const StepQuestion& question_;
  const Transformer& model_;
  const Layout& layout_;
  const cost::Gpu* gpu_;
  Calls tensor_;
  Calls context_;
  Calls data_;
  PassTimes layer_;
  PassTimes embedding_;
  PassTimes head_;
};

// Activations that wait for their backward, of one layer and one microbatch, in bytes.
double kept_of_layer(const Transformer& model, const Layout& layout) {
  const double tokens =
      static_cast<double>(layout.microbatch) * static_cast<double>(model.sequence) / layout.cp;
  const auto hidden = static_cast<double>(model.hidden);
  const double stream = layout.sequence_parallel ? hidden / layout.tp : hidden;
  const double kv = static_cast<double>(model.kv_heads * model.head_size()) / layout.tp;
  const double heads = hidden / layout.tp;
  const double ffn = static_cast<double>(model.ffn) / layout.tp;
  const double outputs =
      heads + 2 * kv + hidden / layout.tp + (model.gated ? 2 : 1) * ffn + hidden / layout.tp;
  double values = 0;
  switch (layout.recompute) {
    case Recompute::full:
      values = stream;
      break;
    case Recompute::selective:  // the layer's input, attention's results, every second product
      values = stream + heads + outputs / 2;
      break;
    case Recompute::none:
    case Recompute::attention:
      values = 4 * stream + 2 * heads + 2 * kv + (model.gated ? 3 : 2) * ffn + (model.gated ? 0 : stream / 2);
      if (!layout.flash && layout.recompute == Recompute::none) {
        values += 2.5 * static_cast<double>(model.sequence) * static_cast<double>(model.heads) / layout.tp;
      }
      break;
  }
  return 2 * tokens * values;
}

StageMemory StepModel::memory_of(int rank) const {
  const auto bytes = [](double value) { return static_cast<std::int64_t>(value); };
  const auto parameters = static_cast<double>(rank_parameters(rank));
  const double shards = this->shards();
  StageMemory memory;
  const auto add = [&](std::string what, double value) {
    memory.holders.push_back({std::move(what), bytes(value)});
  };
  switch (layout_.sharding) {
    case Sharding::full: {
      add("parameters", 4 * parameters / shards);
      add("gradients", 4 * parameters / shards);
      add("optimizer", 8 * parameters / shards);
      // Two layers are gathered, and the gradients of one are in transit; a pipeline's stages stay gathered.
      const double gathered =
          gathers_again() ? 2 * 2 * static_cast<double>(layer_parameters()) : 2 * parameters;
      const double reduced = gathers_again()
                                 ? 2.0 * layout_.gradient_bytes * static_cast<double>(layer_parameters())
                                 : 4 * parameters;
      add("communication buffers", shards > 1 ? gathered + reduced : 0);
      break;
    }
    case Sharding::optimizer:
      add("parameters", 2 * parameters);
      add("gradients", 4 * parameters);
      add("optimizer", 12 * parameters / shards);
      break;
    case Sharding::replicas:
      add("parameters", 2 * parameters);
      add("gradients", 4 * parameters);
      add("optimizer", 12 * parameters);
      break;
  }
  double kept = 0;
  for (std::int64_t stage = rank, chunk = 0; stage < stage_count(); stage += layout_.pp, ++chunk) {
    const int most = layout_.schedule == ScheduleKind::gpipe ? layout_.microbatches
                     : layout_.stages == 1                   ? layout_.pp - rank
                     : chunk == 0                            ? 2 * (layout_.pp - rank) - 1
                                                             : layout_.pp;
    kept += std::min(most, layout_.microbatches) * static_cast<double>(layers_of(stage)) *
            kept_of_layer(model_, layout_);
  }
  add("activations", kept);
  Layout whole = layout_;
  whole.recompute = Recompute::none;
  const double inside = layout_.recompute == Recompute::none ? 0 : kept_of_layer(model_, whole);
  const double tokens =
      static_cast<double>(layout_.microbatch) * static_cast<double>(model_.sequence) / layout_.cp;
  const bool has_head = rank == layout_.pp - 1;
  const double logits =
      has_head ? tokens * static_cast<double>(model_.vocab) / layout_.tp * (layout_.fused ? 8 : 12) : 0;
  add("inside a layer, or the loss", std::max(inside, logits));
  add("CUDA and NCCL", static_cast<double>(context_bytes));
  std::ranges::stable_sort(memory.holders,
                           [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  return memory;
}

// ---- On the simulator ----

namespace names {
constexpr const char* forward = "forward";
constexpr const char* backward = "backward";
constexpr const char* recompute = "recompute";
constexpr const char* tensor = "tensor parallel";
constexpr const char* context = "context parallel";
constexpr const char* gather = "gather";
constexpr const char* reduce = "reduce";
constexpr const char* optimizer = "optimizer";
}  // namespace names

// The work of one rank of the pipeline in a step.
class RankStep {
 public:
  explicit RankStep(const StepModel& model) : model_(model), gathers_(new_stream()), reduces_(new_stream()) {}

  void forward(std::int64_t stage, bool is_first_microbatch) {
    const bool gathers = model_.gathers() && (is_first_microbatch || model_.gathers_again());
    if (!std::exchange(has_begun_, true)) {
      may_gather_.record();  // the vote is over
    }
    const PassTimes ends = model_.ends_of(stage);
    const PassTimes layer = model_.layer();
    const std::int64_t layers = model_.layers_of(stage);
    if (gathers && model_.ends_parameters(stage) > 0) {
      gather(model_.ends_parameters(stage), false);
      await_gather();
    }
    if (model_.is_first(stage)) {
      run_forward(ends);
    }
    if (gathers) {
      for (std::int64_t i = 0; i < layers; ++i) {
        gather(model_.layer_parameters(), true);
        await_gather();
        copy_out();
        run_forward(layer);
      }
    } else {
      run_forward(layer * layers);
    }
    if (model_.is_last(stage) && !model_.is_first(stage)) {
      run_forward(ends);
    }
  }

  void backward(std::int64_t stage, bool is_last_microbatch) {
    const PassTimes layer = model_.layer();
    const std::int64_t layers = model_.layers_of(stage);
    const bool reduces = is_last_microbatch || model_.gathers_again();
    run_backward(model_.ends_of(stage));
    if (!model_.gathers_again() && !(reduces && model_.layout().overlaps_dp)) {
      run_backward(layer * layers);
      if (reduces) {
        reduce(model_.stage_parameters(stage));
      }
      return;
    }
    for (std::int64_t i = 0; i < layers; ++i) {
      if (model_.gathers_again()) {
        gather(model_.layer_parameters(), true);
        await_gather();
        copy_out();
      }
      run_backward(layer);
      launch(names::backward, model_.copy_time(model_.layer_parameters(), 6));
      reduce(model_.layer_parameters());
    }
    reduce(model_.ends_parameters(stage));
  }

  void step(int rank) {
    Event reduced;
    {
      const StreamScope scope(reduces_);
      reduced.record();
    }
    reduced.wait();
    launch(names::optimizer, model_.optimizer_time(rank));
  }

 private:
  static void launch(const char* name, Duration duration) {
    launch_kernel({.duration = duration, .name = name, .source = Kernel::Source::roofline});
  }
  static void run_forward(const PassTimes& times) {
    launch(names::forward, times.forward);
    launch(names::tensor, times.forward_tensor);
    launch(names::context, times.forward_context);
  }
  static void run_backward(const PassTimes& times) {
    launch(names::recompute, times.recompute);
    launch(names::tensor, times.recompute_tensor + times.backward_tensor);
    launch(names::context, times.recompute_context + times.backward_context);
    launch(names::backward, times.backward);
  }

  // A gather may be one layer ahead: it starts no earlier than the computation before the one that needs it.
  void gather(std::int64_t parameters, bool is_layer) {
    const StreamScope scope(gathers_);
    may_gather_.wait();
    launch(names::gather, model_.gather_time(parameters, is_layer));
    gathered_.record();
  }
  void await_gather() {
    may_gather_.record();
    gathered_.wait();
  }
  void copy_out() { launch(names::forward, model_.copy_time(model_.layer_parameters(), 4)); }

  void reduce(std::int64_t parameters) {
    Event computed;
    computed.record();
    const StreamScope scope(reduces_);
    computed.wait();
    launch(names::reduce, model_.reduce_time(parameters));
  }

  const StepModel& model_;
  Stream gathers_;
  Stream reduces_;
  Event may_gather_;
  bool has_begun_ = false;
  Event gathered_;
};

using viz::Intervals;

// Returns the length of the part of `list` outside `taken`, and adds `list` to `taken`.
Duration take(const Intervals& list, Intervals& taken) {
  const Duration before = length(taken);
  taken.insert(taken.end(), list.begin(), list.end());
  viz::unite(taken);
  return length(taken) - before;
}

// Attributes time to parts: a moment in which nothing computes belongs to the first of these parts that runs.
StageTime stage_time(const Timeline& timeline, Rank rank, Time from, Time to) {
  struct Part {
    const char* name;
    Duration StageTime::*where;
  };
  constexpr Part parts[] = {
      {names::forward, &StageTime::compute},     {names::backward, &StageTime::compute},
      {names::recompute, &StageTime::recompute}, {names::optimizer, &StageTime::optimizer},
      {names::tensor, &StageTime::tensor},       {names::context, &StageTime::context},
      {names::gather, &StageTime::gathers},      {names::reduce, &StageTime::reduces},
  };
  StageTime time;
  Intervals taken;
  for (const Part& part : parts) {
    Intervals own;
    for (const Span& span : timeline.spans()) {
      if (span.rank == rank && span.kind == Span::Kind::compute && span.start >= from &&
          timeline.name(span.name) == part.name) {
        own.push_back({span.start, span.end});
      }
    }
    time.*part.where += take(own, taken);
  }
  time.pipeline = to - from - length(taken);
  return time;
}

// A pipeline begins with a vote, which ends when its first rank computes.
Time start_of(const Timeline& timeline) {
  Time start = std::numeric_limits<Time>::max();
  for (const Span& span : timeline.spans()) {
    if (span.kind == Span::Kind::compute) {
      start = std::min(start, span.start);
    }
  }
  return start;
}

struct SimulatedStep {
  Duration step = 0;
  std::vector<StageTime> stages;
};

SimulatedStep simulate(const StepQuestion& question, const StepModel& model, int microbatches) {
  const Layout& layout = model.layout();
  const PipelinePlan plan = make_pipeline_plan({.schedule = layout.schedule,
                                                .ranks = layout.pp,
                                                .stages_per_rank = layout.stages,
                                                .microbatches = microbatches});
  cost::Cluster cluster = question.cluster;
  cluster.nodes = layout.pp;
  sim::Options options{.world_size = layout.pp, .backend = "nccl"};
  // Stages that share a node talk through NVLink.
  const int replica = layout.dp * layout.cp * layout.tp;
  for (Rank rank = 0; rank < layout.pp; ++rank) {
    options.hosts.push_back(rank * replica / cluster.gpus_per_node);
  }
  options.cluster = cluster;
  options.ranks_per_host = cluster.gpus_per_node;
  options.eager_communicators = true;
  options.timeline = true;
  options.may_run_again = false;
  const Report report = sim::run(options, [&](Rank rank) {
    RankStep step(model);
    std::vector<int> forwards(static_cast<std::size_t>(model.stage_count()));
    std::vector<int> backwards(forwards.size());
    const auto forward = [&](std::int64_t stage) {
      step.forward(stage, forwards[static_cast<std::size_t>(stage)]++ == 0);
    };
    const auto backward = [&](std::int64_t stage) {
      step.backward(stage, ++backwards[static_cast<std::size_t>(stage)] == microbatches);
    };
    if (layout.pp > 1) {
      PipelineSchedule schedule(
          plan,
          PipelineOptions{.tensors = {{.shape = {model.message_bytes() / 2}, .dtype = Dtype::bfloat16}}},
          StageFunctions{.forward = [&](const StagePass& pass) { forward(pass.stage); },
                         .backward = [&](const StagePass& pass) { backward(pass.stage); }});
      schedule.step();
    } else {
      for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
        forward(0);
        backward(0);
      }
    }
    step.step(rank);
    synchronize();
  });
  expects(finding_of(report.verdict) == nullptr, "a step of a model ends");
  SimulatedStep simulated;
  const Time start = start_of(report.timeline);
  const Time end = report.simulated_time;
  simulated.step = end - start;
  for (Rank rank = 0; rank < layout.pp; ++rank) {
    simulated.stages.push_back(stage_time(report.timeline, rank, start, end));
  }
  return simulated;
}

// The middle of a long step repeats itself: each further round of `pp` microbatches takes as long as the last one
// simulated.
SimulatedStep simulate(const StepQuestion& question, const StepModel& model) {
  const Layout& layout = model.layout();
  const int rounds = layout.microbatches / layout.pp;
  if (layout.microbatches % layout.pp != 0 || rounds <= 3) {
    return simulate(question, model, layout.microbatches);
  }
  const SimulatedStep shorter = simulate(question, model, 2 * layout.pp);
  SimulatedStep longer = simulate(question, model, 3 * layout.pp);
  const auto extend = [&](Duration& time, Duration before) { time += (time - before) * (rounds - 3); };
  extend(longer.step, shorter.step);
  for (std::size_t rank = 0; rank < longer.stages.size(); ++rank) {
    for (Duration StageTime::*part :
         {&StageTime::compute, &StageTime::recompute, &StageTime::optimizer, &StageTime::tensor,
          &StageTime::context, &StageTime::gathers, &StageTime::reduces, &StageTime::pipeline}) {
      extend(longer.stages[rank].*part, shorter.stages[rank].*part);
    }
  }
  return longer;
}

}  // namespace

std::int64_t StageMemory::bytes() const {
  return std::accumulate(holders.begin(), holders.end(), std::int64_t{0},
                         [](std::int64_t sum, const Holder& each) { return sum + each.bytes; });
}

double StepPrediction::tokens_per_second_per_gpu() const {
  return static_cast<double>(tokens) / gpus / (static_cast<double>(step) / 1e9);
}

double StepPrediction::utilization() const { return tokens_per_second_per_gpu() * model_flops / peak; }

bool StepPrediction::fits() const {
  return std::ranges::all_of(memory,
                             [this](const StageMemory& each) { return each.bytes() <= memory_there; });
}

const cost::Gpu* gpu_of(const StepQuestion& question) {
  return question.gpu != nullptr ? question.gpu : cost::find_gpu(question.cluster);
}

std::int64_t tokens_of(const StepQuestion& question) {
  const Layout& layout = question.layout;
  return question.model.sequence * layout.microbatch * layout.microbatches * layout.dp;
}

StepPrediction predict_step(const StepQuestion& question) {
  const StepModel model(question);
  SimulatedStep simulated;
  try {
    simulated = simulate(question, model);
  } catch (const Error& error) {  // torch's error for stages and microbatches that do not match
    throw std::invalid_argument(error.what());
  }
  StepPrediction prediction;
  prediction.step = simulated.step;
  prediction.stages = std::move(simulated.stages);
  for (int rank = 0; rank < question.layout.pp; ++rank) {
    prediction.memory.push_back(model.memory_of(rank));
  }
  prediction.tokens = tokens_of(question);
  prediction.gpus = question.layout.gpus();
  prediction.memory_there = model.gpu().memory_bytes;
  prediction.model_flops = question.model.model_flops(true);
  prediction.peak = model.gpu().teraflops[static_cast<std::size_t>(cost::Precision::half)] * 1e12;
  return prediction;
}

}  // namespace rollcall::predict
