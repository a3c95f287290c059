// torch.distributed.checkpoint. The golden program new_checkpoint compares its calls with real PyTorch's.

#include "sim/train/checkpoint.h"

#include "sim/c10d/groups.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::checkpoint_test {
namespace {

Report run_on(TorchRelease release, Rank ranks, const std::function<void(Rank)>& body) {
  return sim::run({.world_size = ranks, .backend = "gloo", .torch = release}, body);
}

constexpr TorchRelease releases[] = {TorchRelease::v2_6, TorchRelease::v2_14};

}  // namespace

TEST_CASE("a checkpoint gives back copies and shards", "[fiber][checkpoint]") {
  for (const TorchRelease release : releases) {
    const Report report = run_on(release, 3, [](Rank rank) {
      const Tensor copy = Tensor::full({4}, 7);
      const Tensor shard = Tensor::full({2}, rank);
      checkpoint::save({{"copy", copy}, {"shard", shard, true}}, "step_1");
      copy.fill_(0);
      shard.fill_(-1);
      checkpoint::load({{"copy", copy}, {"shard", shard, true}}, "step_1");
      CHECK(copy.to_vector() == std::vector<double>(4, 7));
      CHECK(shard.to_vector() == std::vector<double>(2, rank));
    });
    CHECK(std::holds_alternative<Completed>(report.verdict));
  }
}

// _dedup_save_plans.py chooses the rank with the least to write so far. Differing copies are a bug that a checkpoint
// hides.
TEST_CASE("of copies that differ, the ones of the ranks that write are loaded", "[fiber][checkpoint]") {
  const Report report = run_on(TorchRelease::v2_14, 2, [](Rank rank) {
    const Tensor first = Tensor::full({4}, rank);
    const Tensor second = Tensor::full({1}, rank);
    const Tensor third = Tensor::full({1}, rank);
    const checkpoint::StateDict state{{"first", first}, {"second", second}, {"third", third}};
    checkpoint::save(state, "step_1");
    checkpoint::load(state, "step_1");
    CHECK(first.to_vector() == std::vector<double>(4, 0));
    CHECK(second.to_vector() == std::vector<double>{1});
    CHECK(third.to_vector() == std::vector<double>{1});
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
}

TEST_CASE("an error of one rank is everybody's CheckpointException", "[fiber][checkpoint]") {
  const Report report = run_on(TorchRelease::v2_14, 2, [](Rank rank) {
    checkpoint::save({{"a", Tensor::ones({2})}}, "step_1");
    const std::string name = rank == 1 ? "b" : "a";
    checkpoint::load({{name, Tensor::ones({2})}}, "step_1");
  });
  for (const Rank rank : {0, 1}) {
    CHECK(report.of(rank).exception ==
          "CheckpointException: CheckpointException ranks:dict_keys([1])\n"
          "Traceback (most recent call last): (RANK 1)\n"
          "RuntimeError: Missing key in checkpoint state_dict: b.\n");
  }
  const Report wrong_size = run_on(TorchRelease::v2_6, 2, [](Rank) {
    checkpoint::save({{"a", Tensor::ones({2})}}, "step_1");
    checkpoint::load({{"a", Tensor::ones({3})}}, "step_1");
  });
  CHECK_THAT(
      wrong_size.of(0).exception,
      Contains("ValueError: Size mismatch between saved torch.Size([2]) and current: torch.Size([3]) for a"));
}

TEST_CASE("a checkpoint that nobody saved is missed in the release's words", "[fiber][checkpoint]") {
  const auto load = [](Rank) { checkpoint::load({{"a", Tensor::ones({2})}}, "none"); };
  CHECK_THAT(run_on(TorchRelease::v2_6, 1, load).of(0).exception,
             Contains("FileNotFoundError: [Errno 2] No such file or directory: 'none/.metadata'"));
  CHECK_THAT(run_on(TorchRelease::v2_14, 1, load).of(0).exception,
             Contains("AssertionError: metadata is None; global metadata read failed"));
  CHECK(run_on(TorchRelease::v1_13, 1, load).of(0).exception ==
        "AttributeError: module 'torch.distributed.checkpoint' has no attribute 'load'");
}

TEST_CASE("a rank that does not save hangs the others", "[fiber][checkpoint]") {
  const Report report = run_on(TorchRelease::v2_14, 4, [](Rank rank) {
    if (rank == 0) {
      checkpoint::save({{"a", Tensor::ones({2})}}, "step_1");
    }
  });
  CHECK(verdict_word(report.verdict) == "deadlock");
}

// 2.6 takes its coordinator to be a rank of the world.
TEST_CASE("a group without rank 0 cannot save with PyTorch 2.6", "[fiber][checkpoint]") {
  const auto body = [](Rank rank) {
    const ProcessGroup group = new_group(RankList{1, 2});
    if (rank > 0) {
      checkpoint::save({{"a", Tensor::ones({2})}}, "step_1", {.group = group});
    }
  };
  CHECK(std::holds_alternative<Completed>(run_on(TorchRelease::v2_14, 3, body).verdict));
  CHECK_THAT(run_on(TorchRelease::v2_6, 3, body).of(1).exception,
             Contains("Global rank 0 is not part of group"));
}

TEST_CASE("without distribution each rank saves its own", "[fiber][checkpoint]") {
  const Report report = run_on(TorchRelease::v2_14, 2, [](Rank rank) {
    const Tensor tensor = Tensor::full({2}, rank);
    const std::string id = "rank_" + std::to_string(rank);
    checkpoint::save({{"a", tensor}}, id, {.no_dist = true});
    tensor.fill_(9);
    checkpoint::load({{"a", tensor}}, id, {.no_dist = true});
    CHECK(tensor.to_vector() == std::vector<double>(2, rank));
  });
  CHECK(report.ops == 0);
}

}  // namespace rollcall::checkpoint_test
