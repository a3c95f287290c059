#pragma once

// How print statements show tensors.

#include <string>

#include "sim/tensor/tensor.h"

namespace rollcall::scenario {

// One element as a number, several in brackets: "11", "0.5", "[1, 2]". Whole numbers have no point, other
// floats are printed as by Python's repr. Tensors of more than a thousand elements, and lists of more than a
// thousand tensors, show the first and last three, as torch does. `is_repr`, for "{t!r}": floats are those of Python's
// repr: "11.0".
std::string tensor_text(const Tensor& tensor, bool is_repr = false);
std::string tensor_text(const TensorList& tensors, bool is_repr = false);

}  // namespace rollcall::scenario
