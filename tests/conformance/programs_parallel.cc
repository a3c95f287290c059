// Family new: device meshes, DTensors and tensor parallel. Their real runs are from torch 2.6 and later.

#include "sim/c10d/device_mesh.h"
#include "sim/dtensor/dtensor.h"
#include "sim/train/flat.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {
namespace {

void device_mesh(CaseContext& context) {
  Scope site("user.new_device_mesh");
  const DeviceMesh mesh = init_device_mesh({{2, 2}, {"dp", "tp"}});
  const auto numbers = [](const std::vector<Rank>& ranks) {
    ObjectList list;
    for (const Rank rank : ranks) {
      list.emplace_back(std::int64_t{rank});
    }
    return Object::list(std::move(list));
  };
  for (const std::string dim : {"dp", "tp"}) {
    const Tensor tensor = Tensor::full({1}, 1.0 + 10 * context.rank());
    all_reduce(tensor, {.group = mesh.get_group(dim)});
    context.put(dim, tensor);
    context.put(dim + "_ranks", numbers(get_process_group_ranks(mesh.get_group(dim))));
  }
  context.put("coordinate", numbers(mesh.get_coordinate()));
}

// torch.arange(begin, begin + numel) * step, with a shape.
Tensor stepped(double begin, double step, const Shape& shape) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    values.push_back((begin + static_cast<double>(i)) * step);
  }
  return slice(Tensor::of(values), 0, shape);
}

double sum_of(const Tensor& tensor) {
  double sum = 0;
  for (const double value : tensor.to_vector()) {
    sum += value;
  }
  return sum;
}

void dtensor(CaseContext& context) {
  Scope site("user.new_dtensor");
  const DeviceMesh mesh = init_device_mesh({{2}, {"dim_0"}});
  const DTensor tensor = distribute_tensor(stepped(0, 1, {4, 2}), mesh, {Shard(0)});
  context.put("local", tensor.to_local());
  const DTensor sum = DTensor::from_local(Tensor::full({}, sum_of(tensor.to_local())), mesh, {Partial()});
  context.put("sum", sum.full_tensor());
  context.put("replicated", tensor.redistribute({Replicate()}).to_local());
  context.put("other_dim", tensor.redistribute({Shard(1)}).to_local());
}

// x @ weight.T, for one row x.
std::vector<double> product(const std::vector<double>& x, const Tensor& weight) {
  const std::int64_t outputs = weight.shape().sizes()[0];
  const std::int64_t inputs = weight.shape().sizes()[1];
  std::vector<double> y(static_cast<std::size_t>(outputs));
  for (std::int64_t out = 0; out < outputs; ++out) {
    for (std::int64_t in = 0; in < inputs; ++in) {
      y[static_cast<std::size_t>(out)] += x[static_cast<std::size_t>(in)] * weight.at(out * inputs + in);
    }
  }
  return y;
}

// Linear(4, 4), ReLU, Linear(4, 2), whose parameters count up in eighths. All values are exact in float32.
void tensor_parallel(CaseContext& context) {
  Scope site("user.new_tensor_parallel");
  constexpr double step = 0.125;
  const DeviceMesh mesh = init_device_mesh({{2}, {"dim_0"}});
  context.mark("parallelize");
  const DTensor weight_0 = distribute_tensor(stepped(1, step, {4, 4}), mesh, {Shard(0)});
  const DTensor bias_0 = distribute_tensor(stepped(17, step, {4}), mesh, {Shard(0)});
  const DTensor weight_2 = distribute_tensor(stepped(21, step, {2, 4}), mesh, {Shard(1)});
  const DTensor bias_2 = distribute_tensor(stepped(29, step, {2}), mesh, {Replicate()});
  context.mark("forward");
  std::vector<double> hidden = product({1, 1, 1, 1}, weight_0.to_local());
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] += bias_0.to_local().at(static_cast<std::int64_t>(i));  // positive, so ReLU does not change it
  }
  std::vector<double> partial = product(hidden, weight_2.to_local());
  for (std::size_t i = 0; i < partial.size(); ++i) {
    partial[i] += bias_2.to_local().at(static_cast<std::int64_t>(i)) / 2;  // every rank's share of the sum
  }
  const DTensor y = DTensor::from_local(slice(Tensor::of(partial), 0, {1, 2}), mesh, {Partial()});
  const Tensor whole = y.redistribute({Replicate()}, true).to_local();
  context.mark("backward");  // x needs no gradient, so nothing is sent
  context.put("y", whole);
}

}  // namespace

std::span<const NamedProgram> parallel_programs() {
  static const NamedProgram table[] = {{"new_device_mesh", device_mesh, {{0, 2}, {1, 3}, {0, 1}, {2, 3}}},
                                       {"new_dtensor", dtensor},
                                       {"new_tensor_parallel", tensor_parallel}};
  return table;
}

}  // namespace rollcall::golden
