#include "tests/conformance/networks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "sim/train/flat.h"

namespace rollcall::golden {

Matrix Matrix::zeros(std::int64_t rows, std::int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<std::size_t>(rows * columns))};
}

Matrix Matrix::ones_like(const Matrix& other) {
  return {other.rows, other.columns, std::vector<double>(other.elements.size(), 1.0)};
}

double& Matrix::at(std::int64_t row, std::int64_t column) {
  return elements[static_cast<std::size_t>(row * columns + column)];
}

double Matrix::at(std::int64_t row, std::int64_t column) const {
  return elements[static_cast<std::size_t>(row * columns + column)];
}

Matrix sample(Rank rank, std::int64_t input, std::int64_t width, std::int64_t batch) {
  Matrix matrix = Matrix::zeros(batch, width);
  for (std::int64_t row = 0; row < batch; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      matrix.at(row, column) = (rank + 1) * 0.5 + static_cast<double>(input) +
                               static_cast<double>(column) * 0.25 + static_cast<double>(row);
    }
  }
  return matrix;
}

namespace {

// Returns the tensor with these values in this shape.
Tensor shaped(const std::vector<double>& values, const Shape& shape, Dtype dtype) {
  return slice(Tensor::of(values, dtype), 0, shape);
}

}  // namespace

void Network::add_linear(const std::string& prefix, std::int64_t in, std::int64_t out, bool bias,
                         Dtype dtype) {
  layers_.push_back({.weight = static_cast<std::uint32_t>(module.parameters.size()), .has_bias = bias});
  module.parameters.push_back({.name = prefix + "weight", .value = Tensor::zeros({out, in}, dtype)});
  if (bias) {
    module.parameters.push_back({.name = prefix + "bias", .value = Tensor::zeros({out}, dtype)});
  }
}

void Network::add_batch_norm(const std::string& prefix, std::int64_t width) {
  layers_.push_back({.is_batch_norm = true,
                     .weight = static_cast<std::uint32_t>(module.parameters.size()),
                     .buffer = module.buffers.size()});
  module.parameters.push_back({.name = prefix + "weight", .value = Tensor::ones({width})});
  module.parameters.push_back({.name = prefix + "bias", .value = Tensor::zeros({width})});
  module.buffers.push_back({prefix + "running_mean", Tensor::zeros({width})});
  module.buffers.push_back({prefix + "running_var", Tensor::ones({width})});
  module.buffers.push_back({prefix + "num_batches_tracked", Tensor::zeros({}, Dtype::int64)});
}

void Network::fill() {
  double next = 0;
  for (Parameter& parameter : module.parameters) {
    std::vector<double> values(static_cast<std::size_t>(parameter.value.numel()));
    for (double& value : values) {
      value = 0.125 * ++next;
    }
    parameter.value = shaped(values, parameter.value.shape(), parameter.value.dtype());
  }
}

Network Network::linear(std::int64_t in, std::int64_t out, bool bias) {
  Network network;
  network.add_linear("", in, out, bias);
  return network;
}

Network Network::build(const std::string& kind) {
  Network network;
  if (kind == "linear" || kind == "buffer_only") {
    network.add_linear("", 2, 1);
  } else if (kind == "linear_nobias") {
    network.add_linear("", 1, 1, false);
  } else if (kind == "mlp3") {
    network.add_linear("0.", 2, 3);
    network.add_linear("1.", 3, 4);
    network.add_linear("2.", 4, 1);
  } else if (kind == "bn") {
    network.add_linear("0.", 2, 3);
    network.add_batch_norm("1.", 3);
    network.add_linear("2.", 3, 1);
  } else if (kind == "branch") {
    network.add_linear("body.", 2, 2, false);
    network.add_linear("left.", 2, 1, false);
    network.add_linear("right.", 2, 1, false);
  } else {
    throw std::runtime_error("no such model: " + kind);
  }
  if (kind == "buffer_only") {
    network.module.buffers.push_back({"seen", Tensor::zeros({2})});
  }
  network.fill();
  return network;
}

Pass Network::forward(const Matrix& input) {
  std::vector<std::size_t> all(layers_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return forward(input, std::move(all));
}

Pass Network::forward(const Matrix& input, std::vector<std::size_t> layers) {
  Pass pass{.layers = std::move(layers), .inputs = {}, .output = input};
  for (const std::size_t layer : pass.layers) {
    pass.inputs.push_back(pass.output);
    pass.output = run(layers_[layer], pass.output);
  }
  return pass;
}

Matrix Network::run(const Layer& layer, const Matrix& input) {
  return layer.is_batch_norm ? run_batch_norm(layer, input) : run_linear(layer, input);
}

Matrix Network::run_linear(const Layer& layer, const Matrix& input) const {
  const Tensor& weight = module.parameters[layer.weight].value;
  const std::int64_t out = weight.shape().sizes()[0];
  Matrix output = Matrix::zeros(input.rows, out);
  for (std::int64_t row = 0; row < input.rows; ++row) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = layer.has_bias ? module.parameters[layer.weight + 1].value.at(o) : 0.0;
      for (std::int64_t i = 0; i < input.columns; ++i) {
        sum += input.at(row, i) * weight.at(o * input.columns + i);
      }
      output.at(row, o) = sum;
    }
  }
  return output;
}

namespace {

constexpr double epsilon = 1e-5;  // torch.nn.BatchNorm1d's eps and momentum
constexpr double momentum = 0.1;

struct Statistics {
  double mean = 0;
  double variance = 0;  // biased
};

Statistics statistics_of(const Matrix& input, std::int64_t column) {
  const auto count = static_cast<double>(input.rows);
  Statistics statistics;
  for (std::int64_t row = 0; row < input.rows; ++row) {
    statistics.mean += input.at(row, column) / count;
  }
  for (std::int64_t row = 0; row < input.rows; ++row) {
    const double distance = input.at(row, column) - statistics.mean;
    statistics.variance += distance * distance / count;
  }
  return statistics;
}

}  // namespace

Matrix Network::run_batch_norm(const Layer& layer, const Matrix& input) {
  const Tensor& weight = module.parameters[layer.weight].value;
  const Tensor& bias = module.parameters[layer.weight + 1].value;
  Matrix output = Matrix::zeros(input.rows, input.columns);
  std::vector<double> means = module.buffers[layer.buffer].value.to_vector();
  std::vector<double> variances = module.buffers[layer.buffer + 1].value.to_vector();
  const auto count = static_cast<double>(input.rows);
  for (std::int64_t c = 0; c < input.columns; ++c) {
    const Statistics statistics = statistics_of(input, c);
    for (std::int64_t row = 0; row < input.rows; ++row) {
      const double normal = (input.at(row, c) - statistics.mean) / std::sqrt(statistics.variance + epsilon);
      output.at(row, c) = normal * weight.at(c) + bias.at(c);
    }
    double& mean = means[static_cast<std::size_t>(c)];
    double& variance = variances[static_cast<std::size_t>(c)];
    mean += momentum * (statistics.mean - mean);
    variance += momentum * (statistics.variance * count / (count - 1) - variance);
  }
  module.buffers[layer.buffer].value.copy_(Tensor::of(means));
  module.buffers[layer.buffer + 1].value.copy_(Tensor::of(variances));
  module.buffers[layer.buffer + 2].value.add_(Tensor::integer(1));
  return output;
}

Gradient Network::gradient_of(std::uint32_t parameter, const std::vector<double>& values) const {
  const Tensor& value = module.parameters[parameter].value;
  return {parameter, shaped(values, value.shape(), value.dtype())};
}

// addmm's backward: the bias before the weight.
Matrix Network::back_linear(const Layer& layer, const Matrix& input, const Matrix& gradient,
                            std::vector<Gradient>& gradients) const {
  const Tensor& weight = module.parameters[layer.weight].value;
  std::vector<double> of_bias(static_cast<std::size_t>(gradient.columns));
  std::vector<double> of_weight(static_cast<std::size_t>(weight.numel()));
  Matrix of_input = Matrix::zeros(input.rows, input.columns);
  for (std::int64_t row = 0; row < input.rows; ++row) {
    for (std::int64_t o = 0; o < gradient.columns; ++o) {
      const double g = gradient.at(row, o);
      of_bias[static_cast<std::size_t>(o)] += g;
      for (std::int64_t i = 0; i < input.columns; ++i) {
        of_weight[static_cast<std::size_t>(o * input.columns + i)] += g * input.at(row, i);
        of_input.at(row, i) += g * weight.at(o * input.columns + i);
      }
    }
  }
  if (layer.has_bias) {
    gradients.push_back(gradient_of(layer.weight + 1, of_bias));
  }
  gradients.push_back(gradient_of(layer.weight, of_weight));
  return of_input;
}

Matrix Network::back_batch_norm(const Layer& layer, const Matrix& input, const Matrix& gradient,
                                std::vector<Gradient>& gradients) const {
  const Tensor& weight = module.parameters[layer.weight].value;
  const auto count = static_cast<double>(input.rows);
  std::vector<double> of_weight(static_cast<std::size_t>(input.columns));
  std::vector<double> of_bias(static_cast<std::size_t>(input.columns));
  Matrix of_input = Matrix::zeros(input.rows, input.columns);
  for (std::int64_t c = 0; c < input.columns; ++c) {
    const Statistics statistics = statistics_of(input, c);
    const double scale = 1 / std::sqrt(statistics.variance + epsilon);
    double& sum = of_bias[static_cast<std::size_t>(c)];
    double& product = of_weight[static_cast<std::size_t>(c)];
    for (std::int64_t row = 0; row < input.rows; ++row) {
      sum += gradient.at(row, c);
      product += gradient.at(row, c) * (input.at(row, c) - statistics.mean) * scale;
    }
    for (std::int64_t row = 0; row < input.rows; ++row) {
      const double normal = (input.at(row, c) - statistics.mean) * scale;
      of_input.at(row, c) =
          weight.at(c) * scale * (gradient.at(row, c) - sum / count - normal * product / count);
    }
  }
  gradients.push_back(gradient_of(layer.weight, of_weight));
  gradients.push_back(gradient_of(layer.weight + 1, of_bias));
  return of_input;
}

std::vector<Gradient> Network::backward(const Pass& pass, Matrix output_gradient,
                                        Matrix& input_gradient) const {
  std::vector<Gradient> gradients;
  Matrix gradient = std::move(output_gradient);
  for (std::size_t i = pass.layers.size(); i-- > 0;) {
    const Layer& layer = layers_[pass.layers[i]];
    gradient = layer.is_batch_norm ? back_batch_norm(layer, pass.inputs[i], gradient, gradients)
                                   : back_linear(layer, pass.inputs[i], gradient, gradients);
  }
  input_gradient = std::move(gradient);
  return gradients;
}

std::vector<Gradient> Network::backward(const Pass& pass) const {
  Matrix input_gradient;
  return backward(pass, Matrix::ones_like(pass.output), input_gradient);
}

std::vector<std::uint32_t> Network::unused(const Pass& pass) const {
  std::vector<std::uint32_t> unused;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (std::ranges::find(pass.layers, i) == pass.layers.end()) {
      unused.push_back(layers_[i].weight);
      if (layers_[i].has_bias) {
        unused.push_back(layers_[i].weight + 1);
      }
    }
  }
  return unused;
}

}  // namespace rollcall::golden
