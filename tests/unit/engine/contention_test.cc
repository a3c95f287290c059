// Calls that run at once and share resources.

#include <functional>
#include <string>

#include "sim/c10d/rank_context.h"
#include "sim/cost/presets.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::sim::contention_test {

namespace {

constexpr std::int64_t large = std::int64_t{1} << 24;  // numel: 64 MiB

Options on(const char* name) {
  Options options{.world_size = 16, .backend = "nccl"};
  options.cluster = cost::find_cluster(name).cluster.value();
  options.ranks_per_host = options.cluster->gpus_per_node;
  options.residuals = true;
  options.timeline = true;
  return options;
}

Tensor gradients(std::int64_t times) {
  return Tensor::full({large * times}, 1, Dtype::float32, this_rank().device);
}

// One pair of ranks on each rail, across both nodes.
std::vector<Group> rails(Rank count) {
  std::vector<Group> groups;
  for (Rank rail = 0; rail < count; ++rail) {
    groups.push_back({.name = "rail" + std::to_string(rail), .ranks = {rail, rail + 8}});
  }
  return groups;
}

Duration time_of(Options options, Rank groups, const std::function<void(Rank)>& before = {}) {
  options.groups = rails(8);
  return run(options,
             [&](Rank rank) {
               if (before) {
                 before(rank);
               }
               if (rank % 8 < groups) {
                 Tensor tensor = gradients(1);
                 all_reduce(tensor, {.group = find_group("rail" + std::to_string(rank % 8))});
               }
             })
      .simulated_time;
}

}  // namespace

TEST_CASE("groups on NICs of their own do not slow each other down", "[engine][cost][fiber]") {
  CHECK(time_of(on("h100-2x8"), 8) == time_of(on("h100-2x8"), 1));
}

TEST_CASE("groups that share a NIC take as much longer as there are of them", "[engine][cost][fiber]") {
  Options options = on("p4d-2x8");  // four NICs for eight GPUs
  const Duration alone = time_of(options, 1);
  CHECK(time_of(options, 4) > alone * 3 / 2);
  CHECK(time_of(options, 4) < alone * 21 / 10);
  options.residuals = false;
  CHECK(time_of(options, 4) == time_of(options, 1));  // NCCL's own estimate ignores other calls
}

TEST_CASE("a call that is joined by another goes on more slowly, and faster when it has left",
          "[engine][cost][fiber]") {
  const Options options = on("p4d-2x8");
  const Duration alone = time_of(options, 1);
  const Duration both = time_of(options, 2);
  const Duration later = time_of(options, 2, [&](Rank rank) { compute(rank % 8 == 1 ? alone / 2 : 0); });
  // The second joins halfway: it shares as long as the first still runs.
  CHECK(later > alone / 2 + alone);
  CHECK(later <= alone / 2 + both);
  CHECK(both > alone);
}

TEST_CASE("a timeline says what a call lost to others, and a lone one's says nothing of it",
          "[engine][cost][fiber]") {
  Options options = on("p4d-2x8");
  options.groups = rails(8);
  const auto remarks = [&](Rank groups) {
    const Report report = run(options, [&](Rank rank) {
      if (rank % 8 < groups) {
        Tensor tensor = gradients(1);
        all_reduce(tensor, {.group = find_group("rail" + std::to_string(rank % 8))});
      }
    });
    std::string all;
    for (const Span& span : report.timeline.spans()) {
      all += report.timeline.name(span.arguments) + "\n";
    }
    return all;
  };
  CHECK(remarks(2).find("times as long as alone, for calls that share a NIC") != std::string::npos);
  CHECK(remarks(1).find("as long as alone") == std::string::npos);
}

TEST_CASE("work on a GPU slows down while NCCL's kernels hold multiprocessors of it, and only then",
          "[engine][cost][fiber]") {
  constexpr Duration work = 100 * millisecond;
  const auto step = [](bool communicates, Duration computes) {
    return run(on("h100-2x8"),
               [&](Rank) {
                 Tensor tensor = gradients(16);
                 Work call;
                 if (communicates) {
                   call = all_reduce(tensor, {.async_op = true});
                 }
                 compute(computes);
                 if (communicates) {
                   call.wait();
                 }
               })
        .simulated_time;
  };
  const Duration communication = step(true, 0);
  REQUIRE(communication > 1 * millisecond);
  CHECK(step(false, work) == work);
  // At most 32 channels of 132 multiprocessors are occupied, and no longer than the call takes.
  CHECK(step(true, work) > work + communication / 20);
  CHECK(step(true, work) < work + communication / 4);
}

}  // namespace rollcall::sim::contention_test
