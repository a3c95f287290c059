// The ring's result computed without messages must equal the ring's result.

#include "sim/gloo/gloo_reduction.h"

#include <cstring>
#include <random>

#include "sim/gloo/gloo_algorithms.h"
#include "sim/tensor/tensor.h"
#include "tests/catch.h"

namespace rollcall::sim::gloo_reduction_test {
namespace {

std::vector<Bits> floats(std::initializer_list<double> values) {
  std::vector<Bits> bits;
  for (const double value : values) {
    bits.push_back(encode(value, Dtype::float32));
  }
  return bits;
}

bool matters(std::initializer_list<double> values, ReduceOp reduce = ReduceOp::sum) {
  return gloo::order_matters(reduce, Dtype::float32, floats(values));
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const std::byte* bytes = tensor.storage()->make_dense();
  return {bytes, bytes + tensor.storage()->bytes()};
}

// Returns the ring's result on every rank.
std::vector<std::vector<std::byte>> by_messages(const Op& op, const TensorList& tensors) {
  std::vector<gloo::Member> members;
  for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
    const std::vector<std::byte> memory = bytes_of(tensors[rank].clone());
    const gloo::Seat seat{rank, tensors.size()};
    const std::size_t element = size_of(op.dtype);
    members.push_back(
        {.function = row_of(op.kind).gloo,
         .dtype = op.dtype,
         .reduce = op.reduce,
         .memory = memory,
         .steps = op.kind == OpKind::reduce
                      ? gloo::reduce_steps(seat, static_cast<std::size_t>(op.root), memory.size(), element)
                      : gloo::all_reduce_steps(seat, memory.size(), element)});
  }
  std::vector<std::vector<std::byte>> left;
  for (const gloo::Outcome& outcome : gloo::exchange(members)) {
    REQUIRE(outcome.fate == check::Fate::completes);
    left.push_back(members[left.size()].memory);
  }
  return left;
}

void check_against_ring(const Op& op, const TensorList& tensors, bool uniform) {
  const auto expected = by_messages(op, tensors);
  std::vector<Storage*> storages;
  std::vector<Bits> values;
  for (const Tensor& tensor : tensors) {
    storages.push_back(tensor.storage());
    if (uniform) {
      values.push_back(tensor.storage()->at(0));
    }
  }
  gloo::reduce_by_ring(op, values, storages);
  for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
    REQUIRE(bytes_of(tensors[rank]) == expected[rank]);
  }
}

// Values over many magnitudes, so that nearly every addition rounds.
Tensor rough(std::int64_t numel, Dtype dtype, bool uniform, std::mt19937& random) {
  const auto draw = [&random] {
    const double mantissa = static_cast<double>(random() % 2000001) / 1000000 - 1;
    return mantissa * static_cast<double>(std::uint64_t{1} << (random() % 12));
  };
  if (uniform) {
    return Tensor::full({numel}, draw(), dtype);
  }
  std::vector<double> values;
  for (std::int64_t i = 0; i < numel; ++i) {
    values.push_back(draw());
  }
  return Tensor::of(values, dtype);
}

}  // namespace

TEST_CASE("whole numbers, equal values and integers add up the same in every order", "[gloo_reduction]") {
  CHECK_FALSE(matters({1, 2, 3}));
  CHECK_FALSE(matters({0.1, 0.1, 0.1}));
  CHECK_FALSE(matters({8388607, -8388607, 1}));
  CHECK_FALSE(matters({0.1, 0.2}, ReduceOp::max));
  CHECK_FALSE(gloo::order_matters(ReduceOp::sum, Dtype::int8, std::vector<Bits>{100, 100, 7}));
  CHECK_FALSE(matters({3, -5, 0}, ReduceOp::product));
}

TEST_CASE("fractions, large magnitudes and what is no number may not", "[gloo_reduction]") {
  CHECK(matters({0.1, 0.2, 0.3}));
  CHECK(matters({1e8, 1, -1e8}));
  CHECK(matters({16777215, 1}));
  CHECK(matters({1, std::numeric_limits<double>::infinity()}));
  CHECK(matters({1, std::numeric_limits<double>::quiet_NaN()}));
  CHECK(matters({5000, 5000, 3}, ReduceOp::product));
}

TEST_CASE("a reduction by chunks has the bits of the ring", "[gloo_reduction]") {
  std::mt19937 random(7);
  for (const std::int64_t ranks : {2, 3, 4, 5, 8}) {
    for (const std::int64_t numel : {1, 2, 3, 7, 16, 33, 1000}) {
      for (const bool uniform : {false, true}) {
        for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::float16}) {
          Op op;
          op.dtype = dtype;
          op.numel = numel;
          for (Rank root = -1; root < ranks; ++root) {
            op.kind = root < 0 ? OpKind::all_reduce : OpKind::reduce;
            op.root = root;
            TensorList tensors;
            for (std::int64_t rank = 0; rank < ranks; ++rank) {
              tensors.push_back(rough(numel, dtype, uniform, random));
            }
            check_against_ring(op, tensors, uniform);
          }
        }
      }
    }
  }
}

TEST_CASE("a tensor of several megabytes is cut into the same chunks", "[gloo_reduction]") {
  std::mt19937 random(11);
  Op op;
  op.kind = OpKind::all_reduce;
  op.numel = 1'300'001;
  TensorList tensors;
  for (int rank = 0; rank < 2; ++rank) {
    tensors.push_back(rough(op.numel, Dtype::float32, false, random));
  }
  check_against_ring(op, tensors, false);
}

}  // namespace rollcall::sim::gloo_reduction_test
