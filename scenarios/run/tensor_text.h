#pragma once

// How print statements show tensors.

#include <string>

#include "sim/tensor/tensor.h"

namespace rollcall::scenario {

// One element as a number, several in brackets: "11", "0.5", "[1, 2]". Whole numbers have no point, other
// floats are printed as by Python's repr. Tensors of more than a thousand elements, and lists of more than a
// thousand tensors, show the first and last three, as torch does.
std::string tensor_text(const Tensor& tensor);
std::string tensor_text(const TensorList& tensors);

// The same, with floats as in Python's repr: "11.0". For "{t!r}".
std::string tensor_repr(const Tensor& tensor);
std::string tensor_repr(const TensorList& tensors);

}  // namespace rollcall::scenario
