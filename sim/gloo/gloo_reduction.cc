#include "sim/gloo/gloo_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "sim/base/expects.h"
#include "sim/gloo/gloo_algorithms.h"
#include "sim/match/slot_calls.h"

namespace rollcall::sim::gloo {
namespace {

bool all_equal(std::span<const Bits> values) {
  return std::all_of(values.begin(), values.end(), [&](Bits value) { return value == values.front(); });
}

// True for whole numbers whose magnitudes add up (or multiply) to less than `limit`, 2^digits: every partial
// result, in any order, is a whole number that the type holds exactly.
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

// Computes what the ranks hold of one element of chunk c = `chunk` in the end. The chunk starts at rank c - 1 and
// travels to the left; each rank adds its own value to the sum that arrives and keeps the new one. It ends at rank c.
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
  if (op.reduce == ReduceOp::avg) {  // torch divides Gloo's result on every rank
    for (Bits& sum : held) {
      sum = finish_average(op.dtype, sum, static_cast<std::int64_t>(ranks));
    }
  }
}

}  // namespace

bool order_matters(ReduceOp reduce, Dtype dtype, std::span<const Bits> values) {
  if (!is_floating(dtype) ||
      (reduce != ReduceOp::sum && reduce != ReduceOp::avg && reduce != ReduceOp::product) ||
      all_equal(values)) {
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
    default:
      return true;
  }
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
    const auto place = static_cast<std::int64_t>(i);
    if (values.empty()) {
      std::ranges::transform(tensors, held.begin(), [&](const Storage* tensor) { return tensor->at(place); });
      go_round(op, i / in_chunk, held);
    } else if (i % in_chunk == 0) {  // the rest of the chunk is the same
      std::copy(values.begin(), values.end(), held.begin());
      go_round(op, i / in_chunk, held);
    }
    for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
      tensors[rank]->set_at(place, held[rank]);
    }
  }
  for (Storage* tensor : tensors) {
    tensor->collapse_if_uniform();
  }
}

namespace {

// Reduces copies of `tensors`, which are given by rank, and returns them.
TensorList reduced(Op op, const TensorList& tensors) {
  TensorList copies;
  std::vector<Storage*> storages;
  for (const Tensor& tensor : tensors) {
    copies.push_back(tensor.clone());
    storages.push_back(copies.back().storage());
  }
  op.numel = copies.front().numel();
  reduce_by_ring(op, {}, storages);
  return copies;
}

void take_part(Storage& output, Storage& whole, std::size_t offset) {
  write_bytes(output, whole.make_dense() + offset, static_cast<std::size_t>(output.bytes()));
}

}  // namespace

void reduce_and_scatter(const Op& op, std::span<const Op> calls) {
  Op step = op;
  step.kind = op.kind == OpKind::reduce_scatter ? OpKind::reduce : OpKind::all_reduce;
  for (std::size_t part = 0; part < calls.size(); ++part) {
    TensorList tensors;
    for (const Op& call : calls) {
      tensors.push_back(call.tensors.inputs != nullptr ? (*call.tensors.inputs)[part]
                                                       : Tensor::share(*call.tensors.input));
    }
    step.root = static_cast<Rank>(part);
    const TensorList results = reduced(step, tensors);
    if (step.kind == OpKind::reduce) {
      take_part(*calls[part].tensors.output, *results[part].storage(), 0);
      continue;
    }
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      Storage& output = *calls[rank].tensors.output;
      take_part(output, *results[rank].storage(), rank * static_cast<std::size_t>(output.bytes()));
    }
    return;
  }
}

}  // namespace rollcall::sim::gloo
