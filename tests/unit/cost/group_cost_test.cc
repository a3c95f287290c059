#include "sim/cost/group_cost.h"

#include "sim/cost/presets.h"
#include "sim/cost/residuals.h"
#include "tests/catch.h"

namespace rollcall::cost::group_cost_test {

namespace {

GroupCost group(std::string_view name) {
  const Cluster cluster = find_cluster(name).cluster.value();
  return GroupCost(communicator_of(cluster, cluster.nodes * cluster.gpus_per_node, cluster.nodes));
}

double time_of(const GroupCost& group, OpKind kind, std::int64_t bytes) {
  return group.predict({.kind = kind, .bytes = bytes})->time;
}

}  // namespace

TEST_CASE("a call's size is the larger of what one rank sends and receives", "[cost]") {
  CHECK(bytes_of_call(OpKind::all_reduce, 100, 8) == 100);
  CHECK(bytes_of_call(OpKind::all_gather, 100, 8) == 800);
  CHECK(bytes_of_call(OpKind::all_gather_into_tensor, 100, 8) == 800);
  CHECK(bytes_of_call(OpKind::reduce_scatter_tensor, 800, 8) == 800);
  CHECK(bytes_of_call(OpKind::gather, 100, 8) == 800);
  CHECK(bytes_of_call(OpKind::barrier, 0, 8) == 4);
}

TEST_CASE("what NCCL has no model for is marked as ours", "[cost]") {
  const GroupCost h100 = group("h100-8");
  for (const OpKind kind : {OpKind::all_to_all, OpKind::all_to_all_single, OpKind::gather, OpKind::scatter,
                            OpKind::send, OpKind::recv}) {
    const Prediction ours = h100.predict({.kind = kind, .bytes = 1 << 20}).value();
    CAPTURE(to_string(kind));
    CHECK_FALSE(ours.by_nccl);
    CHECK(ours.algorithm == "P2P");
    CHECK(ours.fitted == ours.time);
    CHECK(ours.time > 0);
  }
  CHECK(h100.predict({.kind = OpKind::all_reduce, .bytes = 1 << 20})->by_nccl);
}

// From h100_sxm_1x8_{alltoall,sendrecv} and h100_sxm_10x{1,8}_alltoall of tests/data/nccl_tables, at 16 GiB.
TEST_CASE("large messages go at the rate of the ports they pass", "[cost]") {
  constexpr std::int64_t bytes = std::int64_t{1} << 34;
  CHECK(time_of(group("h100-8"), OpKind::all_to_all_single, bytes) == Approx(43'193).epsilon(0.1));
  CHECK(time_of(group("h100-8"), OpKind::send, bytes) == Approx(46'779).epsilon(0.1));
  CHECK(time_of(group("h100-10x8"), OpKind::all_to_all_single, bytes) == Approx(335'382).epsilon(0.1));
  CHECK(time_of(group("h100-10x1"), OpKind::all_to_all_single, bytes) == Approx(345'521).epsilon(0.15));
}

TEST_CASE("a message to another node is slower than one to a neighbor", "[cost]") {
  const GroupCost two_nodes = group("h100-2x8");
  for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{1} << 20, std::int64_t{1} << 30}) {
    const auto near = two_nodes.predict({.kind = OpKind::send, .bytes = bytes, .same_node = true});
    const auto far = two_nodes.predict({.kind = OpKind::send, .bytes = bytes, .same_node = false});
    CHECK(far->time > near->time);
  }
}

TEST_CASE("a call of a group of one takes the time of a launch, whatever its size", "[cost]") {
  const Cluster cluster = find_cluster("h100-8").cluster.value();
  const GroupCost alone(communicator_of(cluster, 1, 1));
  const auto large = alone.predict({.kind = OpKind::all_reduce, .bytes = 1 << 30});
  CHECK(large->time > 0);
  CHECK(large->time == alone.predict({.kind = OpKind::all_reduce, .bytes = 4})->time);
  CHECK_FALSE(large->by_nccl);
  CHECK(alone.tuner() == nullptr);
}

TEST_CASE("microseconds become the nearest nanosecond", "[cost]") {
  CHECK(to_duration(0) == 0);
  CHECK(to_duration(15.0004) == 15'000);
  CHECK(to_duration(15.0006) == 15'001);
  CHECK(to_duration(1e300) == std::int64_t{3'000'000'000'000'000'000});
}

TEST_CASE("a factor meets its sizes and lies between them elsewhere", "[cost]") {
  const BySize factor{{2, 4, 1, 1, 1, 3}};
  CHECK(factor.at(0) == 2);
  CHECK(factor.at(1 << 12) == 2);
  CHECK(factor.at(1 << 14) == Approx(3));
  CHECK(factor.at(1 << 16) == 4);
  CHECK(factor.at(1 << 18) == Approx(2.5));
  CHECK(factor.at(std::int64_t{1} << 40) == 3);
  double last = 2;
  for (std::int64_t bytes = 1 << 12; bytes <= 1 << 16; bytes += 1000) {
    CHECK(factor.at(bytes) >= last);
    last = factor.at(bytes);
  }
}

TEST_CASE("factors change what is expected and never what NCCL takes a call for", "[cost]") {
  const Prediction small = group("a100-8").predict({.kind = OpKind::all_reduce, .bytes = 1024}).value();
  const GroupCost a100 = group("a100-8");
  const Traits traits = traits_of(a100.communicator(), Algorithm::ring);
  CHECK(small.fitted == Approx(small.time * factor_of(fitted_residuals(), traits, 1024)));
  CHECK(small.fitted > small.time);
  CHECK((small.low < small.fitted && small.fitted < small.high));
}

TEST_CASE("bus bandwidth is what nccl-tests makes of it", "[cost]") {
  CHECK(busbw_factor(OpKind::all_reduce, 8) == Approx(1.75));
  CHECK(busbw_factor(OpKind::all_gather, 8) == Approx(0.875));
  CHECK(busbw_factor(OpKind::all_to_all, 16) == Approx(0.9375));
  CHECK(busbw_factor(OpKind::broadcast, 8) == 1);
}

}  // namespace rollcall::cost::group_cost_test
