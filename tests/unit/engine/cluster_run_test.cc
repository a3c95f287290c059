
#include "sim/c10d/rank_context.h"
#include "sim/cost/presets.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::sim::cluster_run_test {
namespace {

Time time_of_run(Options options) {
  return run(options, [](Rank) { all_reduce(Tensor::ones({256}, Dtype::float32, this_rank().device)); })
      .simulated_time;
}

}  // namespace

TEST_CASE("on a cluster a run takes what NCCL's tuner predicts for its calls", "[fiber]") {
  Options options{.world_size = 8, .cluster = cost::find_cluster("h100-8").cluster};
  CHECK(time_of_run(options) == 15'013);
  options.world_size = 16;  // two nodes of eight
  CHECK(time_of_run(options) == 25'269);
}

TEST_CASE("a call between hosts takes longer than one inside a host, wherever the ranks are", "[fiber]") {
  Options options{.world_size = 4, .cluster = cost::find_cluster("h100-8").cluster};
  const Time inside = time_of_run(options);
  options.hosts = {0, 1, 0, 1};
  const Time across = time_of_run(options);
  CHECK(across > inside);
  options.hosts = {0, 0, 1, 1};
  CHECK(time_of_run(options) == across);
}

TEST_CASE("a cluster counts on nccl, and gloo keeps the uniform model", "[fiber]") {
  Options options{.world_size = 8, .cluster = cost::find_cluster("h100-8").cluster};
  options.backend = "gloo";
  const Time with_cluster = time_of_run(options);
  options.cluster.reset();
  CHECK(time_of_run(options) == with_cluster);
}

}  // namespace rollcall::sim::cluster_run_test
