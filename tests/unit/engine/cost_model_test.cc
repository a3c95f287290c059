#include "sim/engine/cost_model.h"

#include <limits>

#include "sim/cost/presets.h"
#include "tests/catch.h"

namespace rollcall::sim::cost_model_test {
namespace {

UniformCost cost;

GroupMembers members(GroupId id, std::vector<Rank> ranks) { return {id, "group", std::move(ranks)}; }

GroupMembers world(Rank size) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size; ++rank) {
    ranks.push_back(rank);
  }
  return members(world_group, std::move(ranks));
}

Op all_reduce_of(std::int64_t numel) {
  Op op;
  op.kind = OpKind::all_reduce;
  op.numel = numel;
  return op;
}

NcclCost nccl(std::string_view cluster, bool with_residuals = false) {
  return NcclCost(cost::find_cluster(cluster).cluster.value(), 8, with_residuals);
}

}  // namespace

TEST_CASE("latency grows with the depth of a tree over the members", "[cost_model]") {
  const auto steps = [](Rank members) { return cost.of(OpKind::barrier, 0, members) / UniformCost::step_latency; };
  CHECK(steps(2) == 1);
  CHECK(steps(3) == 2);
  CHECK(steps(4) == 2);
  CHECK(steps(5) == 3);
  CHECK(steps(8) == 3);
  CHECK(steps(9) == 4);
  CHECK(steps(100'000) == 17);
}

TEST_CASE("even a group of one takes time, so that a loop of calls ends in a limit", "[cost_model]") {
  CHECK(cost.of(OpKind::barrier, 0, 1) > 0);
}

TEST_CASE("bytes take time, and a reduction's cross the link twice", "[cost_model]") {
  const Duration none = cost.of(OpKind::broadcast, 0, 2);
  CHECK(cost.of(OpKind::broadcast, 75'000, 2) - none == 3 * microsecond);
  CHECK(cost.of(OpKind::all_reduce, 75'000, 2) - none == 6 * microsecond);
}

TEST_CASE("a large call is slower than a small one, without overflow", "[cost_model]") {
  constexpr std::int64_t terabyte = 1'000'000'000'000;
  CHECK(cost.of(OpKind::all_reduce, terabyte, 8) > cost.of(OpKind::all_reduce, terabyte / 2, 8));
}

// From data/nccl_tuner, h100_sxm8_cx7_400g_intel_spr: all_reduce of 1 KiB and 64 MiB on one node and on two.
TEST_CASE("on a cluster, a call takes what NCCL's tuner says, to the nanosecond", "[cost_model]") {
  NcclCost one_node = nccl("h100-8");
  CHECK(one_node.of(all_reduce_of(256), world(8)) == 15'013);
  NcclCost two_nodes = nccl("h100-2x8");
  CHECK(two_nodes.of(all_reduce_of(16 << 20), world(16)) == 339'393);
}

TEST_CASE("a group's time goes by the nodes that its members stand on", "[cost_model]") {
  NcclCost cost_of_two = nccl("h100-2x8");
  const Duration inside = cost_of_two.of(all_reduce_of(1 << 20), members(1, {0, 1, 2, 3}));
  const Duration across = cost_of_two.of(all_reduce_of(1 << 20), members(2, {0, 1, 8, 9}));
  CHECK(across > inside);
  CHECK(cost_of_two.of(all_reduce_of(1 << 20), members(1, {0, 1, 2, 3})) == inside);  // cached
}

TEST_CASE("a message's time goes by whether its ends share a node", "[cost_model]") {
  NcclCost cost_of_two = nccl("h100-2x8");
  const GroupMembers everyone = world(16);
  Op send = all_reduce_of(1 << 20);
  send.kind = OpKind::send;
  send.rank = 0;
  CHECK(cost_of_two.of_message(send, 8, everyone) > cost_of_two.of_message(send, 1, everyone));
}

TEST_CASE("what was remembered is what would be predicted again", "[cost_model]") {
  NcclCost remembering = nccl("h100-2x8");
  std::vector<Duration> first;
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t numel = 1; numel < 6000; ++numel) {  // more sizes than are cached
      const Duration duration = remembering.of(all_reduce_of(numel * 1000), world(16));
      if (round == 0) {
        first.push_back(duration);
      } else {
        REQUIRE(duration == first[static_cast<std::size_t>(numel - 1)]);
      }
    }
  }
}

TEST_CASE("residuals are added only where they are asked for", "[cost_model]") {
  NcclCost plain = nccl("a100-8");
  NcclCost fitted = nccl("a100-8", true);
  CHECK(fitted.of(all_reduce_of(256), world(8)) > plain.of(all_reduce_of(256), world(8)));
}

}  // namespace rollcall::sim::cost_model_test
