// What torch's functions do with their arguments, from one rank's side.

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"
#include "tests/unit/c10d/fake_rank.h"

namespace rollcall::collectives_test {

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

TEST_CASE("a missing tensor is refused under the parameter's name, before anything is issued") {
  FakeRank rank;
  const Tensor none;
  const Tensor one = Tensor::ones({1});
  const auto text = [](const std::string& name, const char* type = "torch.Tensor") {
    return "Invalid function argument. Expected parameter `" + name + "` to be of type " + type + ".";
  };
  const char* list = "List[torch.Tensor]";
  CHECK_THROWS_WITH(all_reduce(none), text("tensor"));
  CHECK_THROWS_WITH(broadcast(none, 7), text("tensor"));
  CHECK_THROWS_WITH(gather(one, {none, none}, 0), text("gather_list", list));
  CHECK_THROWS_WITH(scatter(one, {none, none}, 0), text("scatter_list", list));
  CHECK_THROWS_WITH(all_gather({none}, one), text("tensor_list", list));
  CHECK_THROWS_WITH(all_gather_into_tensor(none, none), text("input_tensor"));
  CHECK_THROWS_WITH(all_gather_into_tensor(none, one), text("output_tensor"));
  CHECK_THROWS_WITH(reduce_scatter(none, {one}), text("output"));
  CHECK_THROWS_WITH(reduce_scatter(one, {none}), text("input_list", list));
  CHECK_THROWS_WITH(reduce_scatter_tensor(one, none), text("input"));
  CHECK_THROWS_WITH(all_to_all({none}, {one}), text("output_tensor_list", list));
  CHECK_THROWS_WITH(all_to_all_single(none, none), text("output"));
  CHECK_THROWS_WITH(all_reduce_coalesced({one, none}), text("tensor", list));
  CHECK_THROWS_AS(all_reduce(none), RuntimeError);
  CHECK(rank.issued.empty());
}

TEST_CASE("tensors of one call are of one dtype") {
  FakeRank rank;
  const Tensor single = Tensor::ones({1});
  const Tensor other = Tensor::ones({1}, Dtype::int32);
  const char* text = "Invalid usage of tensors with different dtypesFound torch.float32 and  torch.int32";
  CHECK_THROWS_WITH(all_gather({single, other}, single), text);
  CHECK_THROWS_WITH(all_gather({single, single}, other), text);
  CHECK_THROWS_WITH(gather(single, {single, other}, 0), text);
  CHECK_THROWS_WITH(reduce_scatter(single, {other, other}), text);
  CHECK_THROWS_WITH(all_to_all({single, single}, {other, other}), text);
  CHECK_THROWS_WITH(all_to_all_single(single, other), text);
  CHECK_THROWS_WITH(all_reduce_coalesced({single, other}), text);
  CHECK(rank.issued.empty());
}

TEST_CASE("the root gives a list, and nobody else") {
  FakeRank rank(0, 2);
  const Tensor one = Tensor::ones({1});
  CHECK_THROWS_WITH(gather(one, {}, 0), "Argument ``gather_list`` must be specified on destination rank.");
  CHECK_THROWS_WITH(gather(one, {one, one}, 1),
                    "Argument ``gather_list`` must NOT be specified on non-destination ranks.");
  CHECK_THROWS_WITH(scatter(one, {}, 0), "Argument ``scatter_list`` must be specified on source rank.");
  CHECK_THROWS_WITH(scatter(one, {one, one}, 1),
                    "Argument ``scatter_list`` must NOT be specified on non-source ranks.");
  CHECK_THROWS_AS(gather(one, {}, 0), ValueError);
  CHECK(rank.issued.empty());
}

TEST_CASE("what is wrong with a tensor comes before who belongs to the group, except for all-to-all") {
  FakeRank rank(0, 4);
  rank.add_group("odd", {1, 3});
  const ProcessGroup odd = rank.find_group("odd");
  CHECK_THROWS_AS(broadcast(Tensor(), 1, {.group = odd}), RuntimeError);
  CHECK(rank.warnings.empty());
  all_to_all_single(Tensor(), Tensor(), {.group = odd});
  CHECK(rank.warnings.size() == 1);
}

TEST_CASE("Gloo names its method and what is wrong with roots, lists and sizes") {
  FakeRank rank(0, 2);
  const Tensor one = Tensor::ones({1});
  const Tensor two = Tensor::ones({2});
  const auto text = [](const std::string& rest) { return "ProcessGroupGloo::" + rest; };
  CHECK_THROWS_WITH(broadcast(one, 2), text("broadcast: invalid root rank: 2"));
  CHECK_THROWS_WITH(reduce(one, -1), text("reduce: invalid root rank: -1"));
  CHECK_THROWS_WITH(gather(one, {}, 2), text("gather: invalid root rank: 2"));
  CHECK_THROWS_WITH(
      gather(one, {one}, 0),
      text("gather: Incorrect output list size 1. Output list size should be 2, same as size of "
           "the process group."));
  CHECK_THROWS_WITH(scatter(two, {one, one}, 0),
                    text("scatter: invalid tensor size at index 0 (expected (2), got (1))"));
  CHECK_THROWS_WITH(all_gather({one}, one),
                    text("allgather: invalid output tensor list at index 0 (expected length 2, got 1)"));
  CHECK_THROWS_WITH(all_gather({Tensor::zeros({2, 3}), Tensor::zeros({3, 2})}, Tensor::zeros({2, 3})),
                    text("allgather: invalid tensor size at index 1 (expected (2, 3), got (3, 2))"));
  CHECK_THROWS_WITH(all_reduce_coalesced({}), text("allreduce_coalesced: requires non-empty tensor list"));
  CHECK_THROWS_WITH(gather(Tensor::meta({1}), {}, 1), text("gather: unsupported device type meta"));
  CHECK_THROWS_AS(broadcast(one, 2), RuntimeError);
  CHECK(rank.issued.empty());
}

TEST_CASE("torch 2 does not count the tensors of a list for NCCL, which then runs beyond their end") {
  FakeRank rank(0, 2);
  rank.backend_name = "nccl";
  rank.stand_for(TorchRelease::v2_6);
  const Tensor one = Tensor::ones({1}, Dtype::float32, {DeviceType::cuda, 0});
  CHECK_THROWS_WITH(all_gather({one}, one),
                    "all_gather: a list of 1 for 2 ranks; NCCL would run beyond the end of a tensor");
  CHECK_THROWS_AS(reduce_scatter(one, {one}), RuntimeError);
}

TEST_CASE("NCCL raises other types, and takes lists of uneven sizes") {
  FakeRank rank(0, 2);
  rank.backend_name = "nccl";
  const auto on_gpu = [](std::int64_t numel, Dtype dtype = Dtype::float32) {
    return Tensor::ones({numel}, dtype, {DeviceType::cuda, 0});
  };
  const Tensor one = on_gpu(1);
  CHECK_THROWS_WITH(broadcast(one, 2),
                    "NCCL error: invalid argument. Broadcast : invalid root 2 (root should "
                    "be in the 0..2 range)");
  CHECK_THROWS_WITH(gather(one, {one}, 0),
                    "ProcessGroupNCCL::gather: Incorrect output list size 1. Output list size should be 2, "
                    "same as size of the process group.");
  CHECK_THROWS_AS(gather(one, {one}, 0), ValueError);
  CHECK_THROWS_WITH(all_gather({one}, one),
                    "Tensor list input to scatter/gather must match number of collective participants");
  CHECK_THROWS_AS(all_gather({on_gpu(2), on_gpu(1)}, one), ValueError);  // the rank's own part does not fit
  CHECK_THROWS_AS(reduce_scatter(one, {one}), ValueError);
  CHECK_THROWS_AS(all_gather_into_tensor(on_gpu(2, Dtype::int32), one), TypeError);
  CHECK_THROWS_WITH(all_gather_into_tensor(on_gpu(3), one),
                    "output tensor size must be equal to world_size times input tensor size");
  CHECK_THROWS_WITH(reduce_scatter_tensor(one, on_gpu(3)),
                    "input tensor must be the same size as output size times world size");
  CHECK_THROWS_AS(all_to_all({one}, {one}), ValueError);
  CHECK(rank.issued.empty());

  all_gather({on_gpu(1), on_gpu(2)}, one);
  all_gather_into_tensor(on_gpu(2), one);
  reduce_scatter_tensor(one, on_gpu(2));
  REQUIRE(rank.issued.size() == 3);
  CHECK(rank.issued.front().uneven);
}

TEST_CASE("splits must cover the tensors, one per rank") {
  FakeRank rank(0, 2);
  const Tensor two = Tensor::ones({2});
  const auto exchange = [&](std::vector<std::int64_t> output, std::vector<std::int64_t> input) {
    all_to_all_single(Tensor::zeros({2}), two,
                      {.output_split_sizes = std::move(output), .input_split_sizes = std::move(input)});
  };
  CHECK_THROWS_WITH(exchange({2}, {1, 1}), "Number of tensor splits not equal to group size");
  CHECK_THROWS_WITH(exchange({1, 1}, {1, 2}), "Split sizes doesn't match total dim 0 size");
  CHECK_THROWS_AS(exchange({3, -1}, {1, 1}), RuntimeError);
  CHECK(rank.issued.empty());
  exchange({}, {1, 1});
  exchange({2, 0}, {0, 2});
  all_to_all_single(Tensor::zeros({3}), Tensor::ones({3}));  // Gloo splits the second element
  REQUIRE(rank.issued.size() == 3);
  CHECK(rank.issued.front().uneven);
  CHECK_FALSE(rank.issued.back().uneven);
}

TEST_CASE("Gloo takes an all_to_all whose own parts do not fit, and raises when it runs it") {
  FakeRank rank(0, 2);
  all_to_all_single(Tensor::zeros({4}), Tensor::ones({2}));
  all_to_all_single(Tensor::zeros({3}, Dtype::uint8), Tensor::ones({3}, Dtype::uint8));
  all_to_all_single(Tensor::zeros({2}), Tensor::ones({2}),
                    {.output_split_sizes = {2, 0}, .input_split_sizes = {1, 1}});
  REQUIRE(rank.issued.size() == 3);
  for (const Op& op : rank.issued) {
    CHECK(op.malformed);
  }
}

TEST_CASE("only NCCL's barrier can be told which GPU to use") {
  FakeRank rank;
  CHECK_THROWS_WITH(barrier({.device_ids = {1}}),
                    "Function argument device_ids not supported for the selected backend gloo");
  rank.backend_name = "nccl";
  barrier({.device_ids = {1}});
  REQUIRE(rank.issued.size() == 1);
  CHECK(rank.issued.front().device == Device{DeviceType::cuda, 1});
}

TEST_CASE("a coalesced all-reduce is one operation, and warns") {
  FakeRank rank;
  all_reduce_coalesced({Tensor::ones({2}), Tensor::ones({3})}, {.op = ReduceOp::max});
  REQUIRE(rank.issued.size() == 1);
  CHECK(rank.issued.front().numel == 5);
  CHECK(rank.issued.front().reduce == ReduceOp::max);
  REQUIRE(rank.warnings.size() == 1);
  CHECK(rank.warnings.front().find("all_reduce_coalesced will be deprecated") != std::string::npos);
}

// ---- The same, with ranks that meet ----

TEST_CASE("every rank sends what it likes to whom it likes, when receivers expect it", "[fiber]") {
  const Report report = sim::run({.world_size = 3, .backend = "gloo"}, [](Rank rank) {
    const auto own = static_cast<double>(rank);
    const Tensor output = Tensor::full({6}, -1);
    all_to_all_single(output, Tensor::full({3 * (rank + 1)}, own),
                      {.output_split_sizes = {1, 2, 3}, .input_split_sizes = {rank + 1, rank + 1, rank + 1}});
    CHECK(output.to_vector() == std::vector<double>{0, 1, 1, 2, 2, 2});

    const Tensor rows = Tensor::zeros({3, 2});  // splits count rows
    all_to_all_single(rows, Tensor::full({3, 2}, own), {.input_split_sizes = {1, 1, 1}});
    CHECK(rows.to_vector() == std::vector<double>{0, 0, 1, 1, 2, 2});
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
}

TEST_CASE("splits that do not fit each other are a mismatch of sizes", "[fiber]") {
  for (const char* backend : {"gloo", "nccl"}) {
    const Report report = sim::run({.world_size = 2, .backend = backend}, [](Rank rank) {
      const Device device = this_rank().device;
      all_to_all_single(Tensor::zeros({3}, Dtype::float32, device), Tensor::ones({3}, Dtype::float32, device),
                        {.output_split_sizes = {1, 2},
                         .input_split_sizes =
                             rank == 0 ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{2, 1}});
    });
    INFO(backend);
    CHECK(verdict_word(report.verdict) == "mismatch");
    CHECK(report.of(0).state != RankClass::State::finished);
  }
}

TEST_CASE("NCCL gathers tensors of uneven sizes when every list says so", "[fiber]") {
  const Report report = sim::run({.world_size = 2, .backend = "nccl"}, [](Rank rank) {
    const auto tensor = [](std::int64_t numel, double value) {
      return Tensor::full({numel}, value, Dtype::float32, this_rank().device);
    };
    const TensorList outputs{tensor(1, 0), tensor(2, 0)};
    all_gather(outputs, tensor(rank + 1, 10 + rank));
    CHECK(outputs[0].to_vector() == std::vector<double>{10});
    CHECK(outputs[1].to_vector() == std::vector<double>{11, 11});
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
}

TEST_CASE("a coalesced all-reduce reduces each of its tensors", "[fiber]") {
  sim::run({.world_size = 3, .backend = "gloo"}, [](Rank rank) {
    const TensorList tensors{Tensor::full({2}, rank), Tensor::of({1, 2, 3})};
    all_reduce_coalesced(tensors);
    CHECK(tensors[0].to_vector() == std::vector<double>{3, 3});
    CHECK(tensors[1].to_vector() == std::vector<double>{3, 6, 9});
  });
}

TEST_CASE("a call that its backend refuses leaves the others' collectives as they were", "[fiber]") {
  const Report report = sim::run({.world_size = 2, .backend = "gloo"}, [](Rank rank) {
    if (rank == 0) {
      CHECK_THROWS_AS(broadcast(Tensor::ones({1}), 5), RuntimeError);
    }
    const Tensor tensor = Tensor::ones({1});
    all_reduce(tensor);
    CHECK(tensor.item() == 2);
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
}

TEST_CASE("reductions that a backend does not have are refused", "[fiber]") {
  sim::run({.world_size = 2, .backend = "gloo"}, [](Rank) {
    CHECK_THROWS_WITH(all_reduce(Tensor::ones({1}), {.op = ReduceOp::band}),
                      "Cannot use ReduceOp.BAND with non-integral dtype");
  });
  sim::run({.world_size = 2, .backend = "nccl"}, [](Rank) {
    const Tensor tensor = Tensor::ones({1}, Dtype::int32, this_rank().device);
    CHECK_THROWS_WITH(all_reduce(tensor, {.op = ReduceOp::band}), "Cannot use ReduceOp.BAND with NCCL");
  });
}

TEST_CASE("what a rank prints reaches its backend") {
  FakeRank rank;
  print("epoch 1");
  CHECK(rank.printed == std::vector<std::string>{"epoch 1"});
}

TEST_CASE("gather_single checks what torch 2.14 checks, in its order") {
  FakeRank rank(0, 2);
  const Tensor one = Tensor::ones({1});
  CHECK_THROWS_WITH(gather_single(one, {}, 0), "module 'torch.distributed' has no attribute 'gather_single'");
  CHECK_THROWS_WITH(all_gather_single(one, one),
                    "module 'torch.distributed' has no attribute 'all_gather_single'");
  CHECK_THROWS_WITH(reduce_scatter_single(one, one),
                    "module 'torch.distributed' has no attribute 'reduce_scatter_single'");
  rank.stand_for(TorchRelease::v2_14);
  rank.backend_name = "nccl";
  const Tensor mine = Tensor::ones({1}, Dtype::float32, {DeviceType::cuda, 0});
  const Tensor both = Tensor::ones({2}, Dtype::float32, {DeviceType::cuda, 0});
  CHECK_THROWS_WITH(gather_single({}, both, 0),
                    StartsWith("Invalid function argument. Expected parameter `tensor`"));
  CHECK_THROWS_WITH(gather_single(mine, {}, 0), "gather_tensor must be specified on the destination rank");
  CHECK_THROWS_WITH(gather_single(mine, Tensor::ones({2}, Dtype::int32), 0),
                    StartsWith("Invalid usage of tensors with different dtypes"));
  CHECK_THROWS_WITH(gather_single(mine, mine, 0),
                    "output tensor size must be equal to world_size times input tensor size");
  CHECK_THROWS_WITH(gather_single(mine, both, 7), "ProcessGroupNCCL::gather_single: invalid root rank: 7");
  CHECK(rank.issued.empty());

  gather_single(mine, both, 0);
  gather_single(mine, {}, 1);
  REQUIRE(rank.issued.size() == 2);
  CHECK(rank.issued[0].tensors.output == both.storage());
  CHECK(rank.issued[1].tensors.output == nullptr);
}

TEST_CASE("a warning about a group calls an operation what the release calls it") {
  FakeRank rank(0, 2);
  const Tensor one = Tensor::ones({1});
  rank.add_group("other", {1});
  const ProcessGroup other = find_group("other");
  all_gather_into_tensor(one, one, {.group = other});
  rank.stand_for(TorchRelease::v2_14);
  all_gather_into_tensor(one, one, {.group = other});
  REQUIRE(rank.warnings.size() == 2);
  CHECK_THAT(rank.warnings[0], Contains("Running all_gather_into_tensor on"));
  CHECK_THAT(rank.warnings[1], Contains("Running all_gather_single on"));
}

}  // namespace rollcall::collectives_test
