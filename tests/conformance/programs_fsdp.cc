// The FSDP cases of family new: only for PyTorch 2.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/train/fsdp.h"
#include "sim/train/fully_shard.h"
#include "sim/train/optimizer.h"
#include "tests/conformance/networks.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

// Three linear layers, each a unit; the root has no parameters of its own. The gradients are those of the parameters
// that FSDP has gathered.
class FullyShardProgram {
 public:
  explicit FullyShardProgram(CaseContext& context)
      : context_(context), network_(three_layers()), model_(units_of(network_.module), options_of(context)) {
    optimizer_ = make_optimizer(model_.parameters(), {.lr = 0.1});
  }

  void run() {
    for (std::int64_t i = 0; i < context_.inputs(); ++i) {
      train(i);
    }
    if (context_.params().flag("clip", false)) {
      context_.put("norm", Tensor::of({model_.clip_grad_norm(1.0)}));
    }
    context_.mark("full");
    context_.put("final", model_.full_tensors());
  }

 private:
  static Network three_layers() {
    Network network;
    network.add_linear("0.", 4, 4);
    network.add_linear("1.", 4, 4);
    network.add_linear("2.", 4, 2);
    network.fill();
    return network;
  }

  static FsdpUnit units_of(const Module& module) {
    FsdpUnit root;
    for (std::size_t i = 0; i < module.parameters.size(); i += 2) {
      root.units.push_back(
          {.name = std::to_string(i / 2), .parameters = {module.parameters[i], module.parameters[i + 1]}});
    }
    return root;
  }

  static FullyShardOptions options_of(const CaseContext& context) {
    return {.reshard_after_forward = ReshardAfterForward::of(context.params().flag("reshard", true))};
  }

  void train(std::int64_t input) {
    const std::string number = std::to_string(input);
    context_.mark("forward " + number);
    {
      const Scope scope("user.fully_shard_run");
      model_.forward([&](std::size_t unit) { take_parameters(unit); });
    }
    const std::vector<Gradient> gradients =
        network_.backward(network_.forward(sample(context_.rank(), input, 4)));
    context_.mark("backward " + number);
    {
      const Scope scope("ddp.bucket");  // the harness's name for calls of autograd
      model_.backward([&](std::size_t unit, std::size_t parameter) {
        return std::ranges::find(gradients, 2 * (unit - 1) + parameter, &Gradient::parameter)->value;
      });
    }
    context_.mark("step " + number);
    optimizer_->step();
    for (Parameter* const parameter : model_.parameters()) {
      zero_grad(*parameter, true);
    }
  }

  void take_parameters(std::size_t unit) {
    for (std::size_t i = 0; unit > 0 && i < 2; ++i) {
      network_.module.parameters[2 * (unit - 1) + i].value.copy_(model_.unsharded_param(unit, i));
    }
  }

  CaseContext& context_;
  Network network_;
  FullyShardedModule model_;
  std::unique_ptr<Optimizer> optimizer_;
};

void fully_shard_program(CaseContext& context) { FullyShardProgram(context).run(); }

// Two linear layers in FullyShardedDataParallel, inside another one that has no parameters of its own.
void fsdp1_program(CaseContext& context) {
  const auto layer = [] {
    Network network = Network::linear(4, 4);
    network.fill();
    return network.module;
  };
  FullyShardedDataParallel model({Module(), layer(), layer()});
  for (int i = 0; i < 2; ++i) {
    context.mark("forward " + std::to_string(i));
    {
      const Scope scope("user.new_fsdp1");
      model.forward();
    }
    context.mark("backward " + std::to_string(i));
    const Scope scope("ddp.bucket");
    model.backward([](std::size_t, const Shape& shape) { return Tensor::ones(shape); });
  }
}

const NamedProgram programs[] = {
    {"new_fully_shard_*", fully_shard_program},
    {"new_fsdp1", fsdp1_program},
};

}  // namespace

std::span<const NamedProgram> fsdp_programs() { return programs; }

}  // namespace rollcall::golden
