#pragma once

// The arithmetic of clip_grad_norm_, which is the same for all ways to shard (torch/nn/utils/clip_grad.py). The calls
// in between differ.

#include <span>

#include "sim/tensor/tensor.h"

namespace rollcall {

// Throws ValueError for a norm that is not simulated: 1, 2 and infinity are.
void check_norm_type(double type);
// The sum of |element|^type, or the largest |element|.
double norm_power(const Tensor& tensor, double type);
// The norm that a sum of such powers, or a maximum, belongs to.
double norm_of_power(double power, double type);
// Scales gradients of that norm down to max_norm, never up.
void scale_gradients(std::span<const Tensor> gradients, double norm, double max_norm);

}  // namespace rollcall
