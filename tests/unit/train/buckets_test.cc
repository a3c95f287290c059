#include "sim/train/buckets.h"

#include <array>

#include "sim/train/flat.h"
#include "sim/train/sampler.h"
#include "sim/train/zero.h"
#include "tests/catch.h"

namespace rollcall::buckets_test {

namespace {

TensorList floats(std::initializer_list<std::int64_t> sizes) {
  TensorList tensors;
  for (const std::int64_t size : sizes) {
    tensors.push_back(Tensor::zeros({size}));
  }
  return tensors;
}

}  // namespace

TEST_CASE("a bucket closes once it has reached its limit, and the first limit holds once") {
  const std::array<std::int64_t, 2> limits{16, 64};
  const TensorList tensors = floats({6, 3, 12, 4, 4, 1});
  CHECK(assign_buckets(tensors, limits) == BucketIndices{{0}, {1, 2, 3}, {4, 5}});
}

TEST_CASE("dtypes do not share a bucket, and buckets stand in the order of their first tensors") {
  const std::array<std::int64_t, 1> limits{1000};
  const TensorList tensors{Tensor::zeros({2}), Tensor::zeros({2}, Dtype::float64), Tensor::zeros({2})};
  CHECK(assign_buckets(tensors, limits) == BucketIndices{{0, 2}, {1}});
}

TEST_CASE("in the order of readiness the dtype seen last comes first among what is left over") {
  const std::array<std::int64_t, 1> limits{1000};
  const std::array<std::uint32_t, 3> order{2, 1, 0};
  const TensorList tensors{Tensor::zeros({2}, Dtype::float64), Tensor::zeros({2}), Tensor::zeros({2})};
  CHECK(assign_buckets(tensors, limits, order) == BucketIndices{{1, 0}, {2}});
}

TEST_CASE("flat tensors of one value stay one number, whatever their size") {
  const TensorList parts{Tensor::full({std::int64_t{1} << 40}, 3), Tensor::full({5}, 3)};
  const Tensor flat = flatten(parts);
  CHECK(flat.numel() == (std::int64_t{1} << 40) + 5);
  CHECK(flat.storage()->form == Storage::Form::uniform);
  CHECK(flat.at(7) == 3);
}

TEST_CASE("flattening and unflattening give every tensor its own elements back") {
  const TensorList parts{Tensor::of({1, 2}), Tensor::full({3}, 7), Tensor::of({5})};
  const Tensor flat = flatten(parts);
  CHECK(flat.to_vector() == std::vector<double>{1, 2, 7, 7, 7, 5});
  const TensorList targets{Tensor::zeros({2}), Tensor::zeros({3}), Tensor::zeros({1})};
  unflatten(flat, targets);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK(targets[i].to_vector() == parts[i].to_vector());
  }
  CHECK(slice(flat, 2, {3, 1}).shape() == Shape{3, 1});
}

TEST_CASE("ZeRO gives the largest parameter left to the rank with the fewest elements") {
  using Shards = std::vector<std::vector<std::uint32_t>>;
  CHECK(partition_parameters({6, 3, 12, 4, 4, 1}, 2) == Shards{{2, 1}, {0, 3, 4, 5}});
  CHECK(partition_parameters({3, 3}, 4) == Shards{{0}, {1}, {}, {}});
}

TEST_CASE("a sampler's epoch repeats or drops what does not divide") {
  const EpochSamples padded = samples_per_epoch({.dataset = 103, .num_replicas = 4});
  CHECK(padded.per_rank == 26);
  CHECK(padded.repeated == 1);
  CHECK(padded.dropped == 0);
  const EpochSamples cut = samples_per_epoch({.dataset = 103, .num_replicas = 4, .drop_last = true});
  CHECK(cut.per_rank == 25);
  CHECK(cut.dropped == 3);
  CHECK(shard_size(103, 4, 2) == 26);
  CHECK(shard_size(103, 4, 3) == 25);
}

}  // namespace rollcall::buckets_test
