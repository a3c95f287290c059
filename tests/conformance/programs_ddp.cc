// Families ddp and zero: the program that most of their cases feed with parameters.

#include <memory>
#include <optional>

#include "tests/conformance/networks.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

DdpOptions ddp_options(const CaseContext& context) {
  const Params& params = context.params();
  const Params flags = params.nested("ddp");
  DdpOptions options{.broadcast_buffers = flags.flag("broadcast_buffers", true),
                     .find_unused_parameters = flags.flag("find_unused_parameters", false),
                     .gradient_as_bucket_view = flags.flag("gradient_as_bucket_view", false),
                     .static_graph = flags.flag("static_graph", false),
                     .name_parameters = context.debug()};
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

std::vector<Parameter*> all_parameters(Module& module) {
  std::vector<Parameter*> parameters;
  for (Parameter& parameter : module.parameters) {
    parameters.push_back(&parameter);
  }
  return parameters;
}

// The program's optimizer: one of torch's on every rank, or ZeRO around it.
struct AnyOptimizer {
  std::unique_ptr<Optimizer> plain;
  std::unique_ptr<ZeroRedundancyOptimizer> zero;

  AnyOptimizer(Module& module, const Params& params) {
    const std::string kind = params.has("opt") ? params.text("opt") : "sgd";
    const OptimizerOptions options{
        .kind = kind == "zero_adam" ? OptimizerOptions::Kind::adam : OptimizerOptions::Kind::sgd, .lr = 0.1};
    if (kind == "sgd") {
      plain = make_optimizer(all_parameters(module), options);
    } else {
      const bool view = params.nested("zero").flag("parameters_as_bucket_view", false);
      zero = std::make_unique<ZeroRedundancyOptimizer>(all_parameters(module), options,
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
        network_(Network::build(kind_)) {}

  void run() {
    context_.mark("ctor");
    DistributedDataParallel model(network_.module, ddp_options(context_));
    if (params_.has("comm_hook")) {
      model.register_comm_hook(allreduce_hook);
    }
    context_.mark("optimizer");
    AnyOptimizer optimizer(network_.module, params_);
    auto loop = [&] {
      for (std::int64_t i = 0; i < context_.inputs(); ++i) {
        iterate(model, optimizer, i);
      }
      context_.mark("joined");
    };
    if (params_.flag("join", true)) {
      Join(Joinables(joinables(model, optimizer)), join_options(params_)).run(loop);
    } else {
      loop();
    }
    context_.mark("left");
    context_.put("final_params", named_parameters());
    context_.put("final_buffers", named_buffers());
  }

 private:
  std::vector<std::reference_wrapper<Joinable>> joinables(DistributedDataParallel& model,
                                                          AnyOptimizer& optimizer) const {
    std::vector<std::reference_wrapper<Joinable>> list;
    for (const std::string& name : params_.texts("order", {"ddp"})) {
      list.push_back(name == "ddp" ? static_cast<Joinable&>(model) : *optimizer.zero);
    }
    return list;
  }

  void iterate(DistributedDataParallel& model, AnyOptimizer& optimizer, std::int64_t i) {
    context_.mark("input " + std::to_string(i));
    const bool clears_first = params_.flag("zero_grad_first", false);
    if (clears_first) {
      zero_grad(network_.module);
    }
    const bool only_accumulates = params_.has("sync_every") && (i + 1) % params_.integer("sync_every") != 0;
    {
      std::optional<DistributedDataParallel::NoSync> quiet;
      if (only_accumulates) {
        quiet.emplace(model);
      }
      learn(model, i);
    }
    if (!only_accumulates) {
      optimizer.step();
    }
    context_.add("grads", named_gradients());
    context_.add("params", named_parameters());
    if (!only_accumulates && !clears_first) {
      zero_grad(network_.module, params_.flag("set_to_none", false));
    }
  }

  void learn(DistributedDataParallel& model, std::int64_t i) {
    Pass pass;
    model.forward([&] {
      pass = forward(i);
      return ForwardOutputs{network_.unused(pass)};
    });
    model.backward(network_.backward(pass));
  }

  Pass forward(std::int64_t i) {
    const Matrix input = sample(context_.rank(), i, kind_ == "linear_nobias" ? 1 : 2, kind_ == "bn" ? 2 : 1);
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
};

}  // namespace

void ddp_program(CaseContext& context) {
  Scope site("user.ddp_run");
  DdpProgram(context).run();
}

}  // namespace rollcall::golden
