// Family prim: the plain collectives, alone and in sequence, and what gloo does with floats, dtypes and operations that
// it does not have.

#include <algorithm>
#include <numeric>

#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

Tensor shaped(const Tensor& tensor, const Shape& shape) {
  tensor.storage()->shape = shape;
  return tensor;
}

TensorList rooms(std::int64_t count, std::int64_t numel = 2) {
  TensorList list;
  for (std::int64_t i = 0; i < count; ++i) {
    list.push_back(Tensor::zeros({numel}));
  }
  return list;
}

void reduce_all(CaseContext& context) {
  Scope site("user.all_reduce_run");
  const Params& params = context.params();
  Tensor tensor = ramp(context.rank(), params.integer("numel"), *parse_dtype(params.text("dtype")));
  all_reduce(tensor, {.op = *parse_reduce_op(params.text("op"))});
  context.put("out", tensor);
}

void all_reduce_order(CaseContext& context) {
  Scope site("user.prim_all_reduce_order");
  const double values[] = {1e8, 1, -1e8, 1};
  for (const std::int64_t numel : {1, 4, 1000}) {
    Tensor tensor = Tensor::full({numel}, values[context.rank() % 4]);
    all_reduce(tensor);
    std::vector<double> seen = tensor.to_vector();
    std::vector<double> first(seen.begin(), seen.begin() + std::min<std::ptrdiff_t>(8, numel));
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    const std::string key = "n" + std::to_string(numel);
    context.put(key, seen);
    context.put(key + "_first", Tensor::of(first));
  }
}

void reduce_order(CaseContext& context) {
  Scope site("user.prim_reduce_order");
  const double values[] = {1e8, 1, -1e8};
  const double own = values[context.rank() % 3];
  Tensor everywhere = Tensor::full({1}, own);
  all_reduce(everywhere);
  context.put("all_reduce", everywhere);
  for (Rank dst = 0; dst < 3; ++dst) {
    Tensor tensor = Tensor::full({1}, own);
    reduce(tensor, dst);
    context.put("reduce_to_" + std::to_string(dst), tensor);
  }
}

void broadcast_from_two(CaseContext& context) {
  Scope site("user.prim_broadcast");
  for (const Rank root : {0, 2}) {
    Tensor tensor = ramp(context.rank(), 3);
    broadcast(tensor, root);
    context.put("root_" + std::to_string(root), tensor);
  }
}

void reduce_to_two(CaseContext& context) {
  Scope site("user.prim_reduce");
  for (const Rank dst : {0, 2}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      Tensor tensor = ramp(context.rank(), 2);
      reduce(tensor, dst, {.op = op});
      context.put("dst_" + std::to_string(dst) + "_" + std::string(to_string(op)), tensor);
    }
  }
}

void scatter_parts(CaseContext& context) {
  Scope site("user.prim_scatter");
  Tensor out = Tensor::zeros({2});
  TensorList parts;
  for (Rank rank = 0; context.rank() == 1 && rank < 3; ++rank) {
    parts.push_back(ramp(10 * rank, 2));
  }
  scatter(out, parts, 1);
  context.put("out", out);
}

void gather_parts(CaseContext& context) {
  Scope site("user.prim_gather");
  const TensorList parts = rooms(context.rank() == 1 ? 3 : 0);
  gather(ramp(context.rank(), 2), parts, 1);
  if (context.rank() == 1) {
    context.put("out", parts);
  } else {
    context.put_none("out");
  }
}

void all_gather_parts(CaseContext& context) {
  Scope site("user.prim_all_gather");
  const TensorList parts = rooms(3);
  all_gather(parts, ramp(context.rank(), 2));
  context.put("out", parts);
}

void gather_into_tensor(CaseContext& context) {
  Scope site("user.prim_all_gather_into_tensor");
  Tensor out = Tensor::zeros({4});
  all_gather_into_tensor(out, ramp(context.rank(), 2));
  context.put("out", out);
}

void reduce_scatter_list(CaseContext& context) {
  Scope site("user.prim_reduce_scatter");
  Tensor out = Tensor::zeros({2});
  reduce_scatter(out, {ramp(context.rank(), 2), ramp(context.rank() + 5, 2)});
  context.put("out", out);
}

void reduce_scatter_flat(CaseContext& context) {
  Scope site("user.prim_reduce_scatter_tensor");
  Tensor out = Tensor::zeros({2});
  reduce_scatter_tensor(out, ramp(context.rank(), 4));
  context.put("out", out);
}

void all_to_all_list(CaseContext& context) {
  Scope site("user.prim_all_to_all");
  const TensorList outs = rooms(2, 1);
  const double own = 10.0 * context.rank();
  all_to_all(outs, {Tensor::of({own}), Tensor::of({own + 1})});
  context.put("out", outs);
}

void async_no_wait(CaseContext& context) {
  Scope site("user.prim_async_no_wait");
  TensorList tensors;
  for (int i = 0; i < 4; ++i) {
    tensors.push_back(Tensor::ones({1}));
    all_reduce(tensors.back(), {.async_op = true});
  }
  barrier();
  compute(300 * millisecond);
  context.put("out", tensors);
}

void async_order(CaseContext& context) {
  Scope site("user.prim_async_order");
  Tensor a = Tensor::full({1}, 1.0 + context.rank());
  Tensor b = Tensor::full({1}, 100.0 * (1 + context.rank()));
  const Work first = all_reduce(context.rank() == 0 ? a : b, {.async_op = true});
  const Work second = all_reduce(context.rank() == 0 ? b : a, {.async_op = true});
  first.wait();
  second.wait();
  context.put("a", a);
  context.put("b", b);
}

void barriers(CaseContext&) {
  Scope site("user.prim_barrier");
  barrier();
  barrier({.async_op = true}).wait();
}

void shapes(CaseContext& context) {
  Scope site("user.prim_shapes");
  const double base = 10.0 * context.rank();
  const std::pair<std::string, Tensor> cases[] = {
      {"scalar", Tensor::full({}, context.rank() + 1.0)},
      {"empty", Tensor::zeros({0})},
      {"transposed",
       shaped(Tensor::of({base + 1, base + 4, base + 2, base + 5, base + 3, base + 6}), {3, 2})},
      {"strided", Tensor::of({base + 1, base + 3, base + 5})},
  };
  for (const auto& [label, tensor] : cases) {
    context.catching("all_reduce " + label, [&, &label = label, &tensor = tensor] {
      all_reduce(tensor);
      context.put("all_reduce_" + label, tensor);
    });
    context.catching("broadcast " + label, [&tensor = tensor] { broadcast(tensor, 0); });
  }
}

void same_numel_other_shape(CaseContext& context) {
  Scope site("user.prim_same_numel_other_shape");
  Tensor tensor = shaped(ramp(context.rank(), 6), context.rank() == 0 ? Shape({2, 3}) : Shape({3, 2}));
  all_reduce(tensor);
  context.put("out", tensor);
}

void world_of_one(CaseContext& context) {
  Scope site("user.prim_world_of_one");
  Tensor tensor = ramp(0, 2);
  all_reduce(tensor);
  broadcast(tensor, 0);
  reduce(tensor, 0);
  TensorList out = rooms(1);
  all_gather(out, tensor);
  barrier();
  out.insert(out.begin(), tensor);
  context.put("out", out);
}

void monitored(CaseContext&) {
  Scope site("user.prim_monitored_barrier");
  monitored_barrier({.timeout = 5 * second});
}

}  // namespace

std::span<const NamedProgram> prim_programs() {
  static const NamedProgram table[] = {
      {"prim_all_reduce_order", all_reduce_order},
      {"prim_all_reduce_*", reduce_all},
      {"prim_reduce_order", reduce_order},
      {"prim_broadcast", broadcast_from_two},
      {"prim_reduce", reduce_to_two},
      {"prim_scatter", scatter_parts},
      {"prim_gather", gather_parts},
      {"prim_all_gather", all_gather_parts},
      {"prim_all_gather_into_tensor", gather_into_tensor},
      {"prim_reduce_scatter", reduce_scatter_list},
      {"prim_reduce_scatter_tensor", reduce_scatter_flat},
      {"prim_all_to_all", all_to_all_list},
      {"prim_async_no_wait", async_no_wait},
      {"prim_async_order", async_order},
      {"prim_barrier", barriers},
      {"prim_monitored_barrier", monitored},
      {"prim_shapes", shapes},
      {"prim_same_numel_other_shape", same_numel_other_shape},
      {"prim_world_of_one", world_of_one},
  };
  return table;
}

}  // namespace rollcall::golden
