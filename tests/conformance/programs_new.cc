// Family new: what torch 2.x has and 1.13 does not.

#include "sim/train/checkpoint.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

// Functional collectives do not change their input, and are waited for when their result is used.
void functional(CaseContext& context) {
  Scope site("user.new_functional");
  Tensor tensor = ramp(context.rank(), 2);
  all_reduce(tensor);
  context.put("all_reduce", tensor);
  tensor = Tensor::zeros({4});
  all_gather_into_tensor(tensor, ramp(context.rank(), 2));
  context.put("all_gather", tensor);
  tensor = Tensor::zeros({2});
  reduce_scatter_tensor(tensor, ramp(context.rank(), 4));
  context.put("reduce_scatter", tensor);
  tensor = Tensor::zeros({4});
  all_to_all_single(tensor, ramp(context.rank(), 4),
                    {.output_split_sizes = {2, 2}, .input_split_sizes = {2, 2}});
  context.put("all_to_all", tensor);
  tensor = ramp(context.rank(), 2);
  broadcast(tensor, 1);
  context.put("broadcast", tensor);
}

// The backward of an all_reduce is an all_reduce of the gradients.
void nn_functional(CaseContext& context) {
  const double factor = context.rank() + 1;
  const Tensor sum = Tensor::full({2}, factor);
  {
    Scope site("user.new_nn_functional");
    all_reduce(sum);
  }
  context.put("y", sum);
  Scope site("ddp.bucket");  // the harness labels calls of C++'s autograd so
  Tensor gradient = Tensor::ones({2});
  all_reduce(gradient);
  gradient.mul_(factor);
  context.put("grad", gradient);
}

void coalesced_all_reduce(CaseContext& context) {
  Scope site("user.new_coalesced_all_reduce");
  const Tensor a = ramp(context.rank(), 2);
  const Tensor b = ramp(context.rank(), 3);
  all_reduce_coalesced({a, b});
  context.put("a", a);
  context.put("b", b);
}

void coalesced_uneven(CaseContext& context) {
  Scope site("user.new_coalesced_uneven");
  const Tensor a = ramp(context.rank(), 2);
  const Tensor b = ramp(context.rank(), 3);
  all_reduce_coalesced(context.rank() == 0 ? TensorList{a, b} : TensorList{a});
  context.put("a", a);
}

void group_local(CaseContext& context) {
  Scope site("user.new_group_local");
  if (context.rank() < 2) {
    const ProcessGroup group = new_group(RankList{0, 1}, {.use_local_synchronization = true});
    const Tensor tensor = ramp(context.rank(), 1);
    all_reduce(tensor, {.group = group});
    context.put("t", tensor);
  }
  barrier();
}

void group_src(CaseContext& context) {
  Scope site("user.new_group_src");
  const ProcessGroup group = new_group(RankList{1, 2});
  if (context.rank() > 0) {
    const Tensor tensor = ramp(context.rank(), 1);
    broadcast(tensor, get_global_rank(group, 1), {.group = group});
    context.put("t", tensor);
  }
}

void object_p2p(CaseContext& context) {
  Scope site("user.new_object_p2p");
  if (context.rank() == 0) {
    send_object_list({Object::dict({{"a", 1}}), "text"}, 1);
  } else {
    ObjectList box(2);
    recv_object_list(box, 0);
    context.put("box", Object::list(box));
  }
}

void barriers(CaseContext& context) {
  Scope site("user.new_barriers");
  monitored_barrier({.timeout = 5 * second});
  barrier();
  const Work work = all_reduce(Tensor::ones({1}), {.async_op = true});
  work.wait(3 * second);
  context.put("waited", true);
}

void splits_group(CaseContext& context) {
  context.catching("split", [] { split_group({{0}, {1}}); });
}

Module linear_layers(std::initializer_list<std::int64_t> sizes) {
  Module module;
  for (const std::int64_t size : sizes) {
    module.parameters.push_back({.name = "weight", .value = Tensor::ones({size, size})});
    module.parameters.push_back({.name = "bias", .value = Tensor::ones({size})});
  }
  return module;
}

void checkpoints(CaseContext& context) {
  Scope site("user.new_checkpoint");
  const Tensor saved = Tensor::full({2}, 3);
  checkpoint::save({{"a", saved}}, "ckpt");
  context.mark("load");
  const Tensor loaded = Tensor::zeros({2});
  checkpoint::load({{"a", loaded}}, "ckpt");
  context.put("a", loaded);
}

void ddp_default_cap(CaseContext& context) {
  Module module = linear_layers({600, 600});
  DistributedDataParallel model(module);
  for (int i = 0; i < 2; ++i) {
    context.mark("input " + std::to_string(i));
    std::vector<Gradient> gradients;
    for (std::uint32_t parameter = 4; parameter-- > 0;) {
      gradients.push_back({parameter, Tensor::ones(module.parameters[parameter].value.shape())});
    }
    model.forward([] {});
    model.backward(std::move(gradients));
  }
}

}  // namespace

std::span<const NamedProgram> new_programs() {
  static const NamedProgram table[] = {
      {"new_functional", functional},
      {"new_nn_functional", nn_functional},
      {"new_coalesced_all_reduce", coalesced_all_reduce},
      {"new_coalesced_uneven", coalesced_uneven},
      {"new_group_local", group_local},
      {"new_group_src", group_src, {{1, 2}}},
      {"new_object_p2p", object_p2p},
      {"new_barriers", barriers},
      {"new_checkpoint", checkpoints},
      {"new_split_group", splits_group},
      {"new_ddp_default_cap", ddp_default_cap},
  };
  return table;
}

}  // namespace rollcall::golden
