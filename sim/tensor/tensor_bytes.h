#pragma once

// A tensor as bytes, for comparing tensors of different runs.

#include "sim/base/encoding.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

// Writes the type, the shape and the values. Equal tensors give equal bytes.
void write_values(Encoder& bytes, const Storage& storage);

}  // namespace rollcall
