// Families ddp and zero: the program that most of their cases run, with different parameters. ddp_* and train_* are the
// same loop; train_* were drawn at random, with more options and several epochs.

#include <algorithm>
#include <memory>
#include <optional>

#include "sim/train/flat.h"
#include "tests/conformance/joinables.h"
#include "tests/conformance/networks.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

DdpOptions ddp_options(const CaseContext& context) {
  const Params& params = context.params();
  const Params flags = params.nested("ddp");
  DdpOptions options{.find_unused_parameters = flags.flag("find_unused_parameters", false),
                     .gradient_as_bucket_view = flags.flag("gradient_as_bucket_view", false),
                     .static_graph = flags.flag("static_graph", false),
                     .name_parameters = context.debug()};
  if (flags.has("broadcast_buffers")) {
    options.broadcast_buffers = flags.flag("broadcast_buffers", true);
  }
  if (params.has("bucket_bytes")) {
    options.bucket_cap_bytes = params.integer("bucket_bytes");
  }
  if (params.has("first_bucket_bytes")) {
    options.first_bucket_bytes = params.integer("first_bucket_bytes");
  }
  return options;
}

JoinOptions join_options(const Params& params) {
  const Params flags = params.nested("join_kwargs");
  JoinOptions options{.enable = flags.flag("enable", true),
                      .throw_on_early_termination = flags.flag("throw_on_early_termination", false)};
  if (flags.has("divide_by_initial_world_size")) {
    options.kwargs["divide_by_initial_world_size"] = flags.flag("divide_by_initial_world_size", true);
  }
  return options;
}

std::vector<Parameter*> trainable_parameters(Module& module) {
  std::vector<Parameter*> parameters;
  for (Parameter& parameter : module.parameters) {
    if (parameter.requires_grad) {
      parameters.push_back(&parameter);
    }
  }
  return parameters;
}

CommHook hook_called(const std::string& name) {
  if (name == "allreduce_hook") {
    return allreduce_hook;
  }
  if (name == "fp16_compress_hook") {
    return fp16_compress_hook;
  }
  throw std::runtime_error("no such hook: " + name);
}

// The program's optimizer: a torch optimizer on every rank, or ZeRO around it.
struct AnyOptimizer {
  std::unique_ptr<Optimizer> plain;
  std::unique_ptr<ZeroRedundancyOptimizer> zero;

  AnyOptimizer(Module& module, const Params& params) {
    const std::string kind = params.has("opt") ? params.text("opt") : "sgd";
    const OptimizerOptions options{
        .kind = kind.ends_with("adam") ? OptimizerOptions::Kind::adam : OptimizerOptions::Kind::sgd,
        .lr = 0.1,
        .momentum = params.number("momentum", 0),
        .weight_decay = params.number("weight_decay", 0)};
    if (!kind.starts_with("zero")) {
      plain = make_optimizer(trainable_parameters(module), options);
    } else {
      const bool view = params.nested("zero").flag("parameters_as_bucket_view", false);
      zero = std::make_unique<ZeroRedundancyOptimizer>(trainable_parameters(module), options,
                                                       ZeroOptions{.parameters_as_bucket_view = view});
    }
  }
  void step() {
    if (zero) {
      zero->step();
    } else {
      plain->step();
    }
  }
};

class DdpProgram {
 public:
  explicit DdpProgram(CaseContext& context)
      : context_(context),
        params_(context.params()),
        kind_(params_.has("model") ? params_.text("model") : "linear"),
        network_(Network::build(kind_)),
        tally_(context) {
    prepare_parameters();
  }

  void run() {
    context_.mark("ctor");
    DistributedDataParallel model(network_.module, ddp_options(context_));
    if (params_.has("comm_hook")) {
      model.register_comm_hook(hook_called(params_.text("comm_hook")));
    }
    context_.mark("optimizer");
    AnyOptimizer optimizer(network_.module, params_);
    const auto epochs = params_.epochs("inputs");
    for (std::size_t epoch = 0; epoch < epochs.size(); ++epoch) {
      if (counts_epochs()) {
        context_.mark("epoch " + std::to_string(epoch));
      }
      run_epoch(model, optimizer, epochs[epoch].at(static_cast<std::size_t>(context_.rank())));
    }
    context_.mark("left");
    if (params_.flag("eval", false)) {
      evaluate(model);
    }
    context_.put("final_params", named_parameters());
    context_.put("final_buffers", named_buffers());
    if (params_.has("tally")) {
      context_.put("count", tally_.count());
    }
  }

 private:
  bool counts_epochs() const { return context_.name().starts_with("train_"); }

  void prepare_parameters() {
    const std::vector<std::string> frozen = params_.texts("frozen", {});
    for (Parameter& parameter : network_.module.parameters) {
      if (params_.flag("rank_values", false)) {
        parameter.value.add_(Tensor::of({static_cast<double>(context_.rank())}));
      }
      parameter.requires_grad = std::ranges::find(frozen, parameter.name) == frozen.end();
    }
  }

  void run_epoch(DistributedDataParallel& model, AnyOptimizer& optimizer, std::int64_t inputs) {
    auto loop = [&] {
      for (std::int64_t i = 0; i < inputs; ++i) {
        iterate(model, optimizer, i);
      }
      context_.mark("joined");
    };
    if (params_.flag("join", true)) {
      Join(Joinables(joinables(model, optimizer)), join_options(params_)).run(loop);
    } else {
      loop();
    }
  }

  std::vector<std::reference_wrapper<Joinable>> joinables(DistributedDataParallel& model,
                                                          AnyOptimizer& optimizer) {
    std::vector<std::reference_wrapper<Joinable>> list;
    for (const std::string& name : params_.texts("order", {"ddp"})) {
      list.push_back(name == "ddp"     ? static_cast<Joinable&>(model)
                     : name == "tally" ? static_cast<Joinable&>(tally_)
                                       : *optimizer.zero);
    }
    return list;
  }

  void tally_if(const std::string& when) {
    if (params_.has("tally") && params_.text("tally") == when) {
      tally_();
    }
  }

  void iterate(DistributedDataParallel& model, AnyOptimizer& optimizer, std::int64_t i) {
    context_.mark("input " + std::to_string(i));
    tally_if("before");
    const bool clears_first = params_.flag("zero_grad_first", false);
    const bool to_none = params_.flag("set_to_none", false);
    if (clears_first) {
      zero_grad(network_.module, to_none);
    }
    const bool only_accumulates = params_.has("sync_every") && (i + 1) % params_.integer("sync_every") != 0;
    {
      std::optional<DistributedDataParallel::NoSync> quiet;
      if (only_accumulates) {
        quiet.emplace(model);
      }
      learn(model, i);
    }
    if (!only_accumulates || params_.flag("step_always", false)) {
      optimizer.step();
    }
    tally_if("after");
    context_.add("grads", named_gradients());
    context_.add("params", named_parameters());
    if (!only_accumulates && !clears_first && !params_.flag("keep_grads", false)) {
      zero_grad(network_.module, to_none);
    }
  }

  void learn(DistributedDataParallel& model, std::int64_t i) {
    Pass pass;
    model.forward([&] {
      pass = forward(i);
      return ForwardOutputs{indices_in_model(network_.unused(pass))};
    });
    if (params_.has("skip_backward") && params_.integers("skip_backward") == std::vector{rank(), i}) {
      return;
    }
    for (int times = params_.flag("backward_twice", false) ? 2 : 1; times > 0; --times) {
      model.backward(gradients_in_model(network_.backward(pass)));
    }
  }

  void evaluate(DistributedDataParallel& model) {
    Pass pass;
    const Matrix input = input_of(0);
    model.forward(
        [&] {
          pass = kind_ == "branch" ? network_.forward(input, {0, 1}) : network_.forward(input);
        },
        {.grad_enabled = false});
    const Matrix& output = pass.output;
    context_.put("eval", slice(Tensor::of(output.elements), 0, {output.rows, output.columns}));
  }

  std::int64_t rank() const { return context_.rank(); }

  // DDP numbers the parameters that require gradients; the network numbers all.
  std::optional<std::uint32_t> index_in_model(std::uint32_t parameter) const {
    const std::vector<Parameter>& all = network_.module.parameters;
    if (!all[parameter].requires_grad) {
      return std::nullopt;
    }
    const auto end = all.begin() + parameter;
    return static_cast<std::uint32_t>(
        std::count_if(all.begin(), end, [](const Parameter& each) { return each.requires_grad; }));
  }
  std::vector<std::uint32_t> indices_in_model(const std::vector<std::uint32_t>& parameters) const {
    std::vector<std::uint32_t> indices;
    for (const std::uint32_t parameter : parameters) {
      if (const auto index = index_in_model(parameter)) {
        indices.push_back(*index);
      }
    }
    return indices;
  }
  std::vector<Gradient> gradients_in_model(std::vector<Gradient> gradients) const {
    std::vector<Gradient> trained;
    for (Gradient& gradient : gradients) {
      if (const auto index = index_in_model(gradient.parameter)) {
        trained.push_back({*index, std::move(gradient.value)});
      }
    }
    return trained;
  }

  Matrix input_of(std::int64_t i) const {
    return sample(context_.rank(), i, kind_ == "linear_nobias" ? 1 : 2, kind_ == "bn" ? 2 : 1);
  }

  Pass forward(std::int64_t i) {
    const Matrix input = input_of(i);
    if (kind_ != "branch") {
      return network_.forward(input);
    }
    const bool left = !params_.flag("split", false) || (context_.rank() + i) % 2 == 0;
    return network_.forward(input, {0, left ? 1U : 2U});
  }

  NamedTensors named_parameters() const {
    NamedTensors named;
    for (const Parameter& parameter : network_.module.parameters) {
      named.emplace_back(parameter.name, parameter.value);
    }
    return named;
  }
  NamedTensors named_gradients() const {
    NamedTensors named;
    for (const Parameter& parameter : network_.module.parameters) {
      named.emplace_back(parameter.name, parameter.grad);
    }
    return named;
  }
  NamedTensors named_buffers() const {
    NamedTensors named;
    for (const Buffer& buffer : network_.module.buffers) {
      named.emplace_back(buffer.name, buffer.value);
    }
    return named;
  }

  CaseContext& context_;
  const Params& params_;
  std::string kind_;
  Network network_;
  Tally tally_;
};

}  // namespace

void ddp_program(CaseContext& context) {
  Scope site(context.name().starts_with("train_") ? "user.loop" : "user.ddp_run");
  DdpProgram(context).run();
}

}  // namespace rollcall::golden
