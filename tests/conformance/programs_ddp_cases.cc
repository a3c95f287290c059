// Families ddp and zero: the cases with their own programs.

#include <optional>

#include "tests/conformance/joinables.h"
#include "tests/conformance/networks.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

TensorList gradients_of(const Module& module) {
  TensorList gradients;
  for (const Parameter& parameter : module.parameters) {
    gradients.push_back(parameter.grad);
  }
  return gradients;
}

TensorList values_of(const Module& module) {
  TensorList values;
  for (const Parameter& parameter : module.parameters) {
    values.push_back(parameter.value);
  }
  return values;
}

std::vector<Parameter*> parameters_of(Module& module) {
  std::vector<Parameter*> parameters;
  for (Parameter& parameter : module.parameters) {
    parameters.push_back(&parameter);
  }
  return parameters;
}

Network filled_linear(std::int64_t in, std::int64_t out, bool bias = true) {
  Network network = Network::linear(in, out, bias);
  network.fill();
  return network;
}

Pass forward(DistributedDataParallel& model, Network& network, const Matrix& input,
             ForwardOptions options = {}) {
  Pass pass;
  model.forward([&] { pass = network.forward(input); }, options);
  return pass;
}

// model(input).sum().backward()
void learn(DistributedDataParallel& model, Network& network, const Matrix& input) {
  model.backward(network.backward(forward(model, network, input)));
}

void after_join(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  Join({model}, {.kwargs = {{"divide_by_initial_world_size", false}}}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      learn(model, network, sample(context.rank(), i, 2));
      zero_grad(network.module);
    }
  });
  context.mark("after");
  learn(model, network, sample(context.rank(), 9, 2));
  context.put("grads_after", gradients_of(network.module));
}

void join_method(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  auto loop = [&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      learn(model, network, sample(context.rank(), i, 2));
      context.add("grads", gradients_of(network.module));
    }
  };
  model.join(loop, {.kwargs = {{"divide_by_initial_world_size", false}}});
  context.put("final", values_of(network.module));
}

void with_tally(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  Tally tally(context);
  Join({model, tally}, {.kwargs = {{"sync_max_count", true}, {"divide_by_initial_world_size", false}}})
      .run([&] {
        for (std::int64_t i = 0; i < context.inputs(); ++i) {
          learn(model, network, sample(context.rank(), i, 2));
          tally();
          context.add("grads", gradients_of(network.module));
          zero_grad(network.module);
        }
      });
  context.put("count", tally.count());
  context.put("max_count", tally.count_max());
}

TensorList joined(TensorList first, const TensorList& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void two_models(CaseContext& context) {
  Network a = filled_linear(2, 2);
  Network b = filled_linear(2, 1);
  DistributedDataParallel model_a(a.module, {.name = "a"});
  DistributedDataParallel model_b(b.module, {.name = "b"});
  Join({model_a, model_b}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      const Pass pass = forward(model_a, a, sample(context.rank(), i, 2));
      model_a.backward(a.backward(pass));
      learn(model_b, b, pass.output);
      context.add("grads", joined(gradients_of(a.module), gradients_of(b.module)));
    }
  });
}

void two_models_one_backward(CaseContext& context) {
  Network a = filled_linear(2, 2);
  Network b = filled_linear(2, 1);
  DistributedDataParallel model_a(a.module, {.name = "a"});
  DistributedDataParallel model_b(b.module, {.name = "b"});
  Join({model_a, model_b}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      const Pass pass_a = forward(model_a, a, sample(context.rank(), i, 2));
      const Pass pass_b = forward(model_b, b, pass_a.output);
      Matrix between;
      for (Gradient& gradient : b.backward(pass_b, Matrix::ones_like(pass_b.output), between)) {
        model_b.accumulate(std::move(gradient));
      }
      Matrix unneeded;
      for (Gradient& gradient : a.backward(pass_a, between, unneeded)) {
        model_a.accumulate(std::move(gradient));
      }
      model_b.finish_backward();
      model_a.finish_backward();
      context.add("grads", joined(gradients_of(a.module), gradients_of(b.module)));
    }
    context.mark("joined");
  });
}

void no_grad_forward(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  Join({model}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      learn(model, network, sample(context.rank(), i, 2));
      forward(model, network, sample(context.rank(), i, 2), {.grad_enabled = false});
    }
    context.mark("joined");
  });
}

// Autograd adds the gradients of several uses of a parameter before it passes on the sum.
std::vector<Gradient> sum_of(std::vector<Gradient> first, const std::vector<Gradient>& second) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i].value.add_(second[i].value);
  }
  return first;
}

void two_forwards(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  Join({model}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      const Pass first = forward(model, network, sample(context.rank(), i, 2));
      const Pass second = forward(model, network, sample(context.rank(), i + 1, 2));
      model.backward(sum_of(network.backward(first), network.backward(second)));
      context.add("grads", gradients_of(network.module));
    }
    context.mark("joined");
  });
}

void skipped_backward(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  for (std::int64_t i = 0; i < 3; ++i) {
    context.mark("input " + std::to_string(i));
    const Pass pass = forward(model, network, sample(context.rank(), i, 2));
    if (!(context.rank() == 1 && i == 1)) {
      model.backward(network.backward(pass));
    }
    context.add("grads", gradients_of(network.module));
  }
}

void no_sync_disagree(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  {
    std::optional<DistributedDataParallel::NoSync> quiet;
    if (context.rank() == 1) {
      quiet.emplace(model);
    }
    learn(model, network, sample(context.rank(), 0, 2));
  }
  context.add("grads", gradients_of(network.module));
  learn(model, network, sample(context.rank(), 1, 2));
  context.add("grads", gradients_of(network.module));
}

void no_sync_disagree_join(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  Join({model}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      context.mark("input " + std::to_string(i));
      std::optional<DistributedDataParallel::NoSync> quiet;
      if (context.rank() == 1 && i == 1) {
        quiet.emplace(model);
      }
      learn(model, network, sample(context.rank(), i, 2));
    }
    context.mark("joined");
  });
}

void param_count(CaseContext& context) {
  Network network = Network::linear(2, 1, context.rank() == 0);
  DistributedDataParallel model(network.module);
}

void param_shape(CaseContext& context) {
  Network network = Network::linear(2, 1 + context.rank());
  DistributedDataParallel model(network.module);
}

void param_shape_same_numel(CaseContext& context) {
  Network network = context.rank() == 0 ? Network::linear(2, 3, false) : Network::linear(3, 2, false);
  DistributedDataParallel model(network.module);
}

void initial_broadcast(CaseContext& context) {
  Network network = Network::linear(2, 1);
  for (Parameter& parameter : network.module.parameters) {
    parameter.value.fill_(context.rank() + 1);
  }
  DistributedDataParallel model(network.module);
  context.put("params", values_of(network.module));
}

void no_grad_params(CaseContext&) {
  Network network = Network::linear(2, 1);
  for (Parameter& parameter : network.module.parameters) {
    parameter.requires_grad = false;
  }
  DistributedDataParallel model(network.module);
}

void sync_batchnorm(CaseContext&) {
  Network network;
  network.add_linear("0.", 2, 3);
  network.add_batch_norm("1.", 3);
  network.module.has_sync_batch_norm = true;
  DistributedDataParallel model(network.module);
}

void mixed_devices(CaseContext&) {
  Module module;
  module.parameters.push_back({.name = "0.weight", .value = Tensor::zeros({1, 2})});
  module.parameters.push_back({.name = "1.weight", .value = Tensor::meta({1, 1})});
  DistributedDataParallel model(module);
}

void device_errors(CaseContext& context) {
  Network network = Network::linear(2, 1);
  context.catching("device_ids on cpu",
                   [&] { DistributedDataParallel model(network.module, {.device_ids = {0}}); });
  context.catching("input on meta", [&] { DistributedDataParallel model(network.module); });
}

void subgroup(CaseContext& context) {
  if (context.rank() == 0) {
    return;
  }
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module, {.group = find_group("g1")});
  Join({model}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      learn(model, network, sample(context.rank(), i, 2));
      context.add("grads", gradients_of(network.module));
    }
  });
  context.put("authoritative_rank", std::int64_t{model.authoritative_rank()});
}

void mixed_dtypes(CaseContext& context) {
  Network network;
  network.add_linear("a.", 2, 2);
  network.add_linear("b.", 2, 1, true, Dtype::float64);
  network.fill();
  DistributedDataParallel model(network.module);
  Join({model}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      learn(model, network, sample(context.rank(), i, 2));
      context.add("grads", gradients_of(network.module));
      zero_grad(network.module);
    }
  });
}

void two_epochs(CaseContext& context) {
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  const auto optimizer = make_optimizer(parameters_of(network.module), {.lr = 0.1});
  const auto inputs = context.params().table("inputs");
  for (std::size_t epoch = 0; epoch < inputs.size(); ++epoch) {
    Join({model}).run([&] {
      for (std::int64_t i = 0; i < inputs[epoch].at(static_cast<std::size_t>(context.rank())); ++i) {
        context.mark("epoch " + std::to_string(epoch) + " input " + std::to_string(i));
        learn(model, network, sample(context.rank(), i, 2));
        optimizer->step();
        zero_grad(network.module);
      }
      context.mark("joined " + std::to_string(epoch));
    });
  }
  context.put("final", values_of(network.module));
}

void unshadowed_loss(CaseContext& context) {
  Scope site("user.ddp_unshadowed_loss");
  Network network = filled_linear(2, 1);
  DistributedDataParallel model(network.module);
  Join({model}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      const Pass pass = forward(model, network, sample(context.rank(), i, 2));
      model.backward(network.backward(pass));
      const Tensor loss = Tensor::of({pass.output.at(0, 0)});
      all_reduce(loss);
      context.add("loss", loss);
      zero_grad(network.module);
    }
    context.mark("joined");
  });
  context.put("final", values_of(network.module));
}

std::vector<std::int64_t> numbers(const std::vector<std::uint32_t>& indices) {
  return {indices.begin(), indices.end()};
}

ObjectList objects(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

void zero_alone(CaseContext& context) {
  Network network;
  network.add_linear("0.", 2, 2, false);
  network.add_linear("1.", 2, 1, false);
  network.fill();
  ZeroRedundancyOptimizer optimizer(parameters_of(network.module), {.lr = 0.1});
  Join({optimizer}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      context.mark("input " + std::to_string(i));
      for (Gradient& gradient : network.backward(network.forward(sample(context.rank(), i, 2)))) {
        accumulate_gradient(network.module.parameters[gradient.parameter], std::move(gradient.value));
      }
      optimizer.step();
      context.add("params", values_of(network.module));
      optimizer.zero_grad();
    }
  });
  context.put("final", values_of(network.module));
  Object::Dict partition;
  for (std::size_t rank = 0; rank < optimizer.partition().size(); ++rank) {
    ObjectList shapes;
    for (const std::uint32_t index : optimizer.partition()[rank]) {
      const auto sizes = network.module.parameters[index].value.shape().sizes();
      shapes.push_back(Object::list(objects({sizes.begin(), sizes.end()})));
    }
    partition.emplace_back(std::to_string(rank), Object::list(std::move(shapes)));
  }
  context.put("partition", Object::dict(std::move(partition)));
}

void zero_partition(CaseContext& context) {
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> cases{
      {"equal", {4, 4, 4, 4}},
      {"desc", {9, 5, 4, 3, 2, 1}},
      {"asc", {1, 2, 3, 4, 5, 9}},
      {"few", {3, 3}},
      {"mixed", {7, 1, 7, 1, 7, 1, 2}}};
  for (const auto& [label, sizes] : cases) {
    ObjectList shards;
    for (const auto& shard : partition_parameters(sizes, get_world_size())) {
      shards.push_back(Object::list(objects(numbers(shard))));
    }
    context.put(label, Object::dict({{"sizes", Object::list(objects(sizes))},
                                     {"shards", Object::list(std::move(shards))}}));
  }
}

void zero_consolidate(CaseContext& context) {
  Scope site("user.zero_consolidate");
  Network network = filled_linear(2, 1);
  ZeroRedundancyOptimizer optimizer(parameters_of(network.module), {.lr = 0.1, .momentum = 0.5});
  for (Gradient& gradient : network.backward(network.forward(sample(context.rank(), 0, 2)))) {
    accumulate_gradient(network.module.parameters[gradient.parameter], std::move(gradient.value));
  }
  optimizer.step();
  context.catching("state_dict before consolidating", [&] { optimizer.state_dict(); });
  optimizer.consolidate_state_dict(0);
  context.catching("state_dict after", [&] { optimizer.state_dict(); });
}

const NamedProgram programs[] = {
    {"ddp_after_join", after_join},
    {"ddp_join_method", join_method},
    {"ddp_with_tally", with_tally},
    {"ddp_two_models", two_models},
    {"ddp_two_models_one_backward", two_models_one_backward},
    {"ddp_no_grad_forward", no_grad_forward},
    {"ddp_two_forwards", two_forwards},
    {"ddp_skipped_backward", skipped_backward},
    {"ddp_no_sync_disagree", no_sync_disagree},
    {"ddp_no_sync_disagree_join", no_sync_disagree_join},
    {"ddp_param_count", param_count},
    {"ddp_param_shape", param_shape},
    {"ddp_param_shape_same_numel", param_shape_same_numel},
    {"ddp_initial_broadcast", initial_broadcast},
    {"ddp_no_grad_params", no_grad_params},
    {"ddp_sync_batchnorm", sync_batchnorm},
    {"ddp_mixed_devices", mixed_devices},
    {"ddp_device_errors", device_errors},
    {"ddp_subgroup", subgroup, {{1, 2}}},
    {"ddp_mixed_dtypes", mixed_dtypes},
    {"ddp_two_epochs", two_epochs},
    {"ddp_unshadowed_loss", unshadowed_loss},
    {"zero_alone", zero_alone},
    {"zero_partition", zero_partition},
    {"zero_consolidate", zero_consolidate},
    {"ddp_*", ddp_program},
    {"train_*", ddp_program},
};

}  // namespace

std::span<const NamedProgram> ddp_programs() { return programs; }

}  // namespace rollcall::golden
