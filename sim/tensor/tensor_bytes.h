#pragma once

// A tensor as bytes, for those who compare tensors of different runs.

#include "sim/base/encoding.h"
#include "sim/tensor/tensor.h"

namespace rollcall {

// Its type, its shape and its values. Equal tensors give equal bytes.
void write_values(Encoder& bytes, const Storage& storage);

}  // namespace rollcall
