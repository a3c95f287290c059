#pragma once

// The computations of a scenario's model, as kernels on a rank's GPU.

#include <cstddef>
#include <optional>
#include <vector>

#include "scenarios/program/objects.h"

namespace rollcall::scenario {

class RankFrame;

class ModelKernels {
 public:
  // For the parameters in this order. `dtype`: the type they are computed in, if not their own. The frame is borrowed.
  ModelKernels(const RankFrame& frame, const ModelWork& work, const std::vector<ParameterSpec>& parameters,
               std::optional<Dtype> dtype = {});

  std::size_t count() const { return parameters_.size(); }
  // Launches a kernel on the current stream for the parameters from `first` up to `end`, or none if they take no time.
  void forward(std::size_t first, std::size_t end) const;
  void backward(std::size_t first, std::size_t end) const;

 private:
  struct Part {
    std::int64_t elements = 0;
    std::int64_t before = 0;  // elements of all earlier parameters
    Dtype dtype = Dtype::float32;
  };

  void launch(const char* name, Duration whole, double flops_each, std::size_t first, std::size_t end) const;
  Duration share(Duration whole, std::size_t first, std::size_t end) const;

  const RankFrame* frame_;
  ModelWork work_;
  std::vector<Part> parameters_;
  std::int64_t elements_ = 0;
};

}  // namespace rollcall::scenario
