#include "sim/gloo/gloo_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "sim/base/expects.h"
#include "sim/gloo/gloo_algorithms.h"

namespace rollcall::sim::gloo {
namespace {

bool all_equal(std::span<const Bits> values) {
  return std::all_of(values.begin(), values.end(), [&](Bits value) { return value == values.front(); });
}

// Whole numbers whose magnitudes add up (or multiply) to less than 2^digits: every partial result, in
// whatever order, is a whole number that the type holds exactly.
template <typename Number>
bool stays_whole(ReduceOp reduce, std::span<const Bits> values, double limit, Number&& number) {
  double magnitude = reduce == ReduceOp::product ? 1 : 0;
  for (const Bits bits : values) {
    const double value = std::fabs(number(bits));
    if (!(value < limit) || static_cast<double>(static_cast<std::int64_t>(value)) != value) {
      return false;
    }
    magnitude = reduce == ReduceOp::product ? magnitude * std::max(value, 1.0) : magnitude + value;
  }
  return magnitude < limit;
}

// What the ranks hold of one element after the first round of the ring. Chunk c starts at rank c - 1 and
// travels to the left; each rank adds its own value to what arrives and keeps the sum. It ends at rank c.
void go_round(const Op& op, std::size_t chunk, std::vector<Bits>& held) {
  const std::size_t ranks = held.size();
  for (std::size_t step = 2; step <= ranks; ++step) {
    const std::size_t rank = (chunk + ranks - step) % ranks;
    held[rank] = reduce_step(op.reduce, op.dtype, held[rank], held[(rank + 1) % ranks]);
  }
  if (op.kind == OpKind::reduce) {
    held[static_cast<std::size_t>(op.root)] = held[chunk];
  } else {
    std::fill(held.begin(), held.end(), held[chunk]);
  }
}

void store(Storage& storage, std::size_t index, Bits bits) {
  const std::size_t size = size_of(storage.dtype);
  std::memcpy(storage.elements.data() + index * size, &bits, size);
}

}  // namespace

bool order_matters(ReduceOp reduce, Dtype dtype, std::span<const Bits> values) {
  if (!is_floating(dtype) || (reduce != ReduceOp::sum && reduce != ReduceOp::product) || all_equal(values)) {
    return false;
  }
  switch (dtype) {
    case Dtype::float32:
      return !stays_whole(reduce, values, 0x1p24, [](Bits bits) {
        return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      });
    case Dtype::float64:
      return !stays_whole(reduce, values, 0x1p53, [](Bits bits) { return std::bit_cast<double>(bits); });
    case Dtype::float16:
      return !stays_whole(reduce, values, 0x1p11, [](Bits bits) { return decode(bits, Dtype::float16); });
    case Dtype::bfloat16:
    case Dtype::int8:
    case Dtype::int16:
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::uint8:
    case Dtype::boolean:
    case Dtype::complex64:
    case Dtype::complex128:
      break;
  }
  return true;
}

void reduce_by_ring(const Op& op, std::span<const Bits> values, std::span<Storage* const> tensors) {
  expects(tensors.size() >= 2, "a ring has at least two members");
  const std::size_t element = size_of(op.dtype);
  const auto numel = static_cast<std::size_t>(op.numel);
  const Segments segments(tensors.size(), numel * element, element);
  const std::size_t in_chunk = segments.per_rank * segments.bytes / element;
  std::vector<Bits> held(values.begin(), values.end());
  if (!values.empty() && numel <= in_chunk) {
    go_round(op, 0, held);
    for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
      tensors[rank]->set_uniform(held[rank]);
    }
    return;
  }
  held.resize(tensors.size());
  for (Storage* tensor : tensors) {
    tensor->make_dense();
  }
  for (std::size_t i = 0; i < numel; ++i) {
    if (values.empty()) {
      std::transform(tensors.begin(), tensors.end(), held.begin(),
                     [i](const Storage* tensor) { return tensor->at(static_cast<std::int64_t>(i)); });
      go_round(op, i / in_chunk, held);
    } else if (i % in_chunk == 0) {  // the rest of the chunk fares alike
      std::copy(values.begin(), values.end(), held.begin());
      go_round(op, i / in_chunk, held);
    }
    for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
      store(*tensors[rank], i, held[rank]);
    }
  }
  for (Storage* tensor : tensors) {
    tensor->collapse_if_uniform();
  }
}

}  // namespace rollcall::sim::gloo
