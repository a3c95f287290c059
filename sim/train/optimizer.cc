#include "sim/train/optimizer.h"

#include <cmath>
#include <string>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/expects.h"

namespace rollcall {
namespace {

// target[i] = f(target[i], source[i]) in double precision, rounded once; a single step for uniform tensors.
template <typename F>
void update_elements(const Tensor& target, const Tensor& source, F&& f) {
  Storage& to = *target.settle().storage();
  const Storage& from = *source.settle().storage();
  expects(to.numel == from.numel && to.dtype == from.dtype,
          "a parameter, its gradient and its state are alike");
  if (to.form == Storage::Form::meta || from.form == Storage::Form::meta || to.numel == 0) {
    return;
  }
  if (to.form == Storage::Form::uniform && from.form == Storage::Form::uniform) {
    to.value = encode(f(decode(to.value, to.dtype), decode(from.value, to.dtype)), to.dtype);
    return;
  }
  to.make_dense();
  for (std::int64_t i = 0; i < to.numel; ++i) {
    to.set_at(i, encode(f(decode(to.at(i), to.dtype), decode(from.at(i), to.dtype)), to.dtype));
  }
  to.collapse_if_uniform();
}

Tensor zeros_like(const Tensor& tensor) {
  return Tensor::zeros(tensor.shape(), tensor.dtype(), tensor.device());
}

// A tensor inside a state dict, as its values. A real pickle holds those, and torch's own framing.
Object tensor_object(const Tensor& tensor) {
  ObjectList values;
  for (const double value : tensor.to_vector()) {
    values.emplace_back(value);
  }
  return Object::list(std::move(values));
}

// torch/optim/sgd.py, without dampening and Nesterov's variant.
class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<Parameter*> parameters, const OptimizerOptions& options)
      : Optimizer(std::move(parameters), options), momentum_(this->parameters().size()) {}

 protected:
  void update(std::size_t index, Parameter& parameter, const Tensor& gradient) override {
    const double lr = options().lr;
    if (options().momentum == 0) {
      update_elements(parameter.value, gradient, [lr](double value, double g) { return value - lr * g; });
      return;
    }
    Tensor& buffer = momentum_[index];
    if (!buffer) {
      buffer = gradient.clone();
    } else {
      const double momentum = options().momentum;
      update_elements(buffer, gradient, [momentum](double b, double g) { return momentum * b + g; });
    }
    update_elements(parameter.value, buffer, [lr](double value, double b) { return value - lr * b; });
  }

  Object::Dict state_of(std::size_t index) const override {
    if (!momentum_[index]) {
      return {};
    }
    return {{"momentum_buffer", tensor_object(momentum_[index])}};
  }

 private:
  TensorList momentum_;
};

// torch/optim/adam.py, without amsgrad.
class Adam final : public Optimizer {
 public:
  Adam(std::vector<Parameter*> parameters, const OptimizerOptions& options)
      : Optimizer(std::move(parameters), options), states_(this->parameters().size()) {}

 protected:
  void update(std::size_t index, Parameter& parameter, const Tensor& gradient) override {
    State& state = states_[index];
    if (state.steps++ == 0) {
      state.average = zeros_like(parameter.value);
      state.square_average = zeros_like(parameter.value);
    }
    const double b1 = options().beta1;
    const double b2 = options().beta2;
    update_elements(state.average, gradient, [b1](double m, double g) { return m * b1 + (1 - b1) * g; });
    update_elements(state.square_average, gradient,
                    [b2](double v, double g) { return v * b2 + (1 - b2) * g * g; });
    const double step_size = options().lr / (1 - power(b1, state.steps));
    const double scale = std::sqrt(1 - power(b2, state.steps));
    const double eps = options().eps;
    Tensor change = state.average.clone();
    update_elements(change, state.square_average,
                    [&](double m, double v) { return step_size * m / (std::sqrt(v) / scale + eps); });
    update_elements(parameter.value, change, [](double value, double c) { return value - c; });
  }

  Object::Dict state_of(std::size_t index) const override {
    const State& state = states_[index];
    if (state.steps == 0) {
      return {};
    }
    return {{"step", Object(static_cast<double>(state.steps))},
            {"exp_avg", tensor_object(state.average)},
            {"exp_avg_sq", tensor_object(state.square_average)}};
  }

 private:
  struct State {
    std::int64_t steps = 0;
    Tensor average;
    Tensor square_average;
  };

  // base^exponent by multiplication alone: std::pow may differ in the last bit between machines.
  static double power(double base, std::int64_t exponent) {
    double result = 1;
    for (; exponent > 0; exponent /= 2, base *= base) {
      result *= exponent % 2 == 1 ? base : 1;
    }
    return result;
  }

  std::vector<State> states_;
};

}  // namespace

Optimizer::Optimizer(std::vector<Parameter*> parameters, OptimizerOptions options)
    : parameters_(std::move(parameters)), options_(options) {}

void Optimizer::step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = *parameters_[i];
    if (!parameter.grad) {
      continue;
    }
    if (options_.weight_decay == 0) {
      update(i, parameter, parameter.grad);
      continue;
    }
    const Tensor gradient = parameter.grad.clone();
    const double decay = options_.weight_decay;
    update_elements(gradient, parameter.value, [decay](double g, double value) { return g + decay * value; });
    update(i, parameter, gradient);
  }
}

Object Optimizer::state_dict() const {
  Object::Dict states;
  ObjectList indices;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    indices.emplace_back(static_cast<std::int64_t>(i));
    Object::Dict state = state_of(i);
    if (!state.empty()) {
      states.emplace_back(std::to_string(i), Object::dict(std::move(state)));
    }
  }
  Object::Dict group{{"lr", Object(options_.lr)}, {"weight_decay", Object(options_.weight_decay)}};
  if (options_.kind == OptimizerOptions::Kind::sgd) {
    group.emplace_back("momentum", Object(options_.momentum));
  } else {
    group.emplace_back("betas", Object::list({Object(options_.beta1), Object(options_.beta2)}));
    group.emplace_back("eps", Object(options_.eps));
  }
  group.emplace_back("params", Object::list(std::move(indices)));
  return Object::dict({{"state", Object::dict(std::move(states))},
                       {"param_groups", Object::list({Object::dict(std::move(group))})}});
}

std::unique_ptr<Optimizer> make_optimizer(std::vector<Parameter*> parameters,
                                          const OptimizerOptions& options) {
  if (options.kind == OptimizerOptions::Kind::adam) {
    return std::make_unique<Adam>(std::move(parameters), options);
  }
  return std::make_unique<Sgd>(std::move(parameters), options);
}

}  // namespace rollcall
