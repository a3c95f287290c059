#include "scenarios/run/model_kernels.h"

#include "scenarios/run/rank_frame.h"
#include "sim/base/expects.h"
#include "sim/c10d/stream.h"
#include "sim/cost/roofline.h"

namespace rollcall::scenario {

ModelKernels::ModelKernels(const RankFrame& frame, const ModelWork& work,
                           const std::vector<ParameterSpec>& parameters, std::optional<Dtype> dtype)
    : frame_(&frame), work_(work) {
  for (const ParameterSpec& parameter : parameters) {
    const std::int64_t elements = parameter.shape.numel();
    parameters_.push_back({elements, elements_, dtype.value_or(parameter.dtype)});
    elements_ += elements;
  }
}

// Forward multiplies every element once by every token; backward does so for the gradients of the input and of the
// parameter.
void ModelKernels::forward(std::size_t first, std::size_t end) const {
  launch("forward", work_.forward_time, 2, first, end);
}
void ModelKernels::backward(std::size_t first, std::size_t end) const {
  launch("backward", work_.backward_time, 4, first, end);
}

void ModelKernels::launch(const char* name, Duration whole, double flops_each, std::size_t first,
                          std::size_t end) const {
  expects(first <= end && end <= parameters_.size(), "kernels are those of parameters that are there");
  Kernel kernel{.duration = share(whole, first, end), .name = name};
  if (work_.tokens) {
    const double tokens = frame_->amount(work_.tokens);
    kernel.source = Kernel::Source::roofline;
    for (std::size_t i = first; i < end; ++i) {
      kernel.duration += frame_->time_of(
          {.flops = flops_each * tokens * static_cast<double>(parameters_[i].elements),
           .precision =
               cost::parse_precision(to_string(parameters_[i].dtype)).value_or(cost::Precision::float32),
           .kind = cost::KernelKind::matmul});
    }
  }
  if (kernel.duration > 0) {
    launch_kernel(kernel);
  }
}

// Shares of consecutive parameters add up to the whole.
Duration ModelKernels::share(Duration whole, std::size_t first, std::size_t end) const {
  if (whole == 0 || first == end || elements_ == 0) {  // most models have no times
    return 0;
  }
  const auto until = [&](std::int64_t elements) {
    return static_cast<Duration>(static_cast<double>(whole) * static_cast<double>(elements) /
                                 static_cast<double>(elements_));
  };
  return until(parameters_[end - 1].before + parameters_[end - 1].elements) -
         until(parameters_[first].before);
}

}  // namespace rollcall::scenario
