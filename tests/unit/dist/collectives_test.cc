// What torch's functions make of their arguments, from one rank's side.

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/dist/collectives.h"
#include "sim/dist/error.h"
#include "tests/unit/dist/fake_rank.h"

namespace rollcall {

using test::FakeRank;

TEST_CASE("a collective without a group is one of the world") {
  FakeRank rank(1, 4);
  CHECK(get_rank() == 1);
  CHECK(get_world_size() == 4);
  all_reduce(Tensor::ones({3}));
  CHECK(rank.issued.front().group == world_group);
  CHECK(rank.issued.front().rank == 1);
}

TEST_CASE("a blocking collective is waited for, an asynchronous one is not") {
  FakeRank rank;
  all_reduce(Tensor::ones({1}));
  CHECK(rank.waited.size() == 1);
  Work work = all_reduce(Tensor::ones({1}), {.async_op = true});
  CHECK(rank.waited.size() == 1);
  work.wait();
  CHECK(rank.waited.size() == 2);
}

TEST_CASE("a Work that stands for nothing is completed") {
  Work work;
  work.wait();
  CHECK(work.is_completed());
}

TEST_CASE("roots are given as global ranks and travel as ranks of the group") {
  FakeRank rank(5, 8);
  rank.add_group("odd", {1, 3, 5, 7});
  ProcessGroup odd = rank.find_group("odd");
  broadcast(Tensor::ones({1}), 3, {.group = odd});
  CHECK(rank.issued.front().root == 1);
  CHECK(rank.issued.front().rank == 2);
  CHECK_THROWS_AS(broadcast(Tensor::ones({1}), 2, {.group = odd}), Error);
  CHECK_THROWS_AS(broadcast(Tensor::ones({1}), 8), Error);
  CHECK_THROWS_AS(reduce(Tensor::ones({1}), -1), Error);
}

TEST_CASE("a call on a group one does not belong to warns and does nothing") {
  FakeRank rank(0, 4);
  rank.add_group("odd", {1, 3});
  ProcessGroup odd = rank.find_group("odd");
  CHECK(get_rank(odd) == -1);
  CHECK(get_world_size(odd) == -1);
  Tensor tensor = Tensor::ones({1});
  all_reduce(tensor, {.group = odd});
  broadcast(tensor, 1, {.group = odd});
  barrier({.group = odd});
  CHECK(rank.issued.empty());
  REQUIRE(rank.warnings.size() == 3);
  CHECK(rank.warnings.front().ends_with(
      "Running all_reduce on global rank 0 which does not belong to the given group."));
}

TEST_CASE("an operation carries what its tensor is") {
  FakeRank rank;
  all_reduce(Tensor::full({2, 3}, 1, Dtype::int64, {DeviceType::cuda, 1}), {.op = ReduceOp::max});
  const Op& op = rank.issued.front();
  CHECK(op.numel == 6);
  CHECK(op.dtype == Dtype::int64);
  CHECK(op.reduce == ReduceOp::max);
  CHECK(op.device == Device{DeviceType::cuda, 1});
}

TEST_CASE("an operation carries the line of the program that made it") {
  FakeRank rank;
  barrier();
  const unsigned line = __LINE__ - 1;
  CHECK(rank.issued.front().site.line == line);
}

TEST_CASE("lists must hold one tensor per rank") {
  FakeRank rank(0, 3);
  Tensor one = Tensor::ones({1});
  CHECK_THROWS_AS(all_gather({one.clone()}, one), Error);
  CHECK_THROWS_AS(reduce_scatter(one, {one.clone(), one.clone()}), Error);
  CHECK_THROWS_AS(gather(one, {}, 0), Error);
  CHECK_THROWS_AS(gather(one, {one.clone(), one.clone(), one.clone()}, 1), Error);  // not the destination
  CHECK_THROWS_AS(scatter(one, {one.clone()}, 0), Error);
  CHECK_THROWS_AS(all_to_all({one.clone()}, {one.clone()}), Error);
  CHECK(rank.issued.empty());
}

TEST_CASE("sizes of inputs and outputs must fit the world") {
  FakeRank rank(0, 2);
  CHECK_THROWS_AS(all_gather_into_tensor(Tensor::zeros({3}), Tensor::ones({2})), Error);
  CHECK_THROWS_AS(reduce_scatter_tensor(Tensor::zeros({3}), Tensor::ones({4})), Error);
  CHECK_THROWS_AS(all_to_all_single(Tensor::zeros({3}), Tensor::ones({3})), Error);
  all_gather_into_tensor(Tensor::zeros({4}), Tensor::ones({2}));
  reduce_scatter_tensor(Tensor::zeros({2}), Tensor::ones({4}));
  all_to_all_single(Tensor::zeros({4}), Tensor::ones({4}));
  CHECK(rank.issued.size() == 3);
}

TEST_CASE("a bitwise reduction of floats is refused") {
  FakeRank rank;
  CHECK_THROWS_AS(all_reduce(Tensor::ones({1}), {.op = ReduceOp::band}), RuntimeError);
  all_reduce(Tensor::ones({1}, Dtype::int32), {.op = ReduceOp::band});
  CHECK(rank.issued.size() == 1);
}

TEST_CASE("a missing tensor is an error of the program") {
  FakeRank rank;
  CHECK_THROWS_AS(all_reduce(Tensor{}), TypeError);
}

TEST_CASE("what a rank prints reaches its backend") {
  FakeRank rank;
  print("epoch 1");
  CHECK(rank.printed == std::vector<std::string>{"epoch 1"});
}

}  // namespace rollcall
