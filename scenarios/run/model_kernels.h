#pragma once

// What a model of a scenario computes, as kernels on the GPU of a rank.

#include <cstddef>
#include <optional>
#include <vector>

#include "scenarios/program/training.h"

namespace rollcall::scenario {

class RankFrame;

class ModelKernels {
 public:
  // Of the parameters in this order. `dtype`: what they are computed in, where it is not their own. The frame is
  // borrowed.
  ModelKernels(const RankFrame& frame, const ModelWork& work, const std::vector<ParameterSpec>& parameters,
               std::optional<Dtype> dtype = {});

  std::size_t count() const { return parameters_.size(); }
  // A kernel on the current stream for the parameters from `first` up to `end`, or none where they take no time.
  void forward(std::size_t first, std::size_t end) const;
  void backward(std::size_t first, std::size_t end) const;

 private:
  struct Part {
    std::int64_t elements = 0;
    std::int64_t before = 0;  // elements of all parameters before
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
