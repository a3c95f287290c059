#pragma once

// The small models of the golden DDP programs, with the gradients that autograd computes for them. Everything is
// computed in double precision, rounded to the parameters' own type, and compared with torch within a tolerance.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/dist.h"

namespace rollcall::golden {

struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> elements;  // row after row

  static Matrix zeros(std::int64_t rows, std::int64_t columns);
  static Matrix ones_like(const Matrix& other);
  double& at(std::int64_t row, std::int64_t column);
  double at(std::int64_t row, std::int64_t column) const;
};

// The catalog's sample(): the input number `input` of `rank`.
Matrix sample(Rank rank, std::int64_t input, std::int64_t width, std::int64_t batch = 1);

// What a forward pass saves for its backward.
struct Pass {
  std::vector<std::size_t> layers;  // in order of use
  std::vector<Matrix> inputs;       // of each
  Matrix output;
};

class Network {
 public:
  // "linear", "linear_nobias", "mlp3", "bn", "buffer_only" or "branch", parameters 0.125, 0.25, ...
  static Network build(const std::string& kind);
  // One Linear(in, out).
  static Network linear(std::int64_t in, std::int64_t out, bool bias = true);

  // Appends a layer; its parameters are called prefix + "weight", prefix + "bias".
  void add_linear(const std::string& prefix, std::int64_t in, std::int64_t out, bool bias = true,
                  Dtype dtype = Dtype::float32);
  void add_batch_norm(const std::string& prefix, std::int64_t width);
  // The catalog's fill(): 0.125, 0.25, ... through all parameters.
  void fill();

  // Runs the given layers, by default all. Batch norms update their running statistics.
  Pass forward(const Matrix& input);
  Pass forward(const Matrix& input, std::vector<std::size_t> layers);
  // Returns the gradients in autograd's order, and sets `input_gradient` to that of the input.
  std::vector<Gradient> backward(const Pass& pass, Matrix output_gradient, Matrix& input_gradient) const;
  // The gradients of the sum of the outputs.
  std::vector<Gradient> backward(const Pass& pass) const;
  // Returns the parameters of the layers that the pass did not run.
  std::vector<std::uint32_t> unused(const Pass& pass) const;

  Module module;

 private:
  struct Layer {
    bool is_batch_norm = false;
    std::uint32_t weight = 0;
    bool has_bias = true;    // the parameter after the weight
    std::size_t buffer = 0;  // for a batch norm: the first of its three
  };

  Matrix run(const Layer& layer, const Matrix& input);
  Matrix run_linear(const Layer& layer, const Matrix& input) const;
  Matrix run_batch_norm(const Layer& layer, const Matrix& input);
  Matrix back_linear(const Layer& layer, const Matrix& input, const Matrix& gradient,
                     std::vector<Gradient>& gradients) const;
  Matrix back_batch_norm(const Layer& layer, const Matrix& input, const Matrix& gradient,
                         std::vector<Gradient>& gradients) const;
  Gradient gradient_of(std::uint32_t parameter, const std::vector<double>& values) const;

  std::vector<Layer> layers_;
};

}  // namespace rollcall::golden
