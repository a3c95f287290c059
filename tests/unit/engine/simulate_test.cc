// sim::run as its users see it.
//
// Nothing is checked inside a rank: it runs on a small stack of its own, and a failed assertion would leave it with an
// exception. Ranks note what they saw, and the test checks that afterwards.

#include "sim/engine/simulate.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "tests/catch.h"

namespace rollcall::sim::simulate_test {
namespace {

using State = RankClass::State;

Options gloo(Rank world_size) { return {.world_size = world_size, .backend = "gloo"}; }

std::string word(const Report& report) { return std::string(verdict_word(report.verdict)); }

const Finding& finding(const Report& report) {
  REQUIRE(finding_of(report.verdict) != nullptr);
  return *finding_of(report.verdict);
}

Tensor number(double value) { return Tensor::full({1}, value); }

}  // namespace

TEST_CASE("ranks reduce what they bring", "[simulate][fiber]") {
  std::vector<double> sums(4);
  const Report report = run(gloo(4), [&](Rank rank) {
    const Tensor tensor = number(rank);
    all_reduce(tensor);
    sums[static_cast<std::size_t>(rank)] = tensor.item();
  });
  CHECK(word(report) == "ok");
  CHECK(sums == std::vector<double>{6, 6, 6, 6});
  CHECK(report.ops == 4);
  CHECK(report.simulated_time > 0);
  CHECK(to_string(report.of(0).ranks) == "0-3");
}

TEST_CASE("uneven inputs without Join are a deadlock with a culprit", "[simulate][fiber]") {
  const Report report = run(gloo(4), [](Rank rank) {
    for (int i = 0; i < 5 + (rank > 0); ++i) {
      all_reduce(number(1));
    }
  });
  CHECK(word(report) == "deadlock");
  CHECK(to_string(finding(report).culprits) == "0");
  CHECK(finding(report).at->call.seq == 5);
  CHECK(report.of(0).state == State::finished);
  CHECK(report.of(3).state == State::waiting);
  CHECK(report.of(3).last_completed->seq == 4);
}

TEST_CASE("a world of one talks to itself", "[simulate][fiber]") {
  double sum = 0;
  std::vector<double> gathered;
  const Report report = run(gloo(1), [&](Rank) {
    const Tensor tensor = number(3);
    all_reduce(tensor);
    broadcast(tensor, 0);
    barrier();
    const TensorList outputs{number(0)};
    all_gather(outputs, tensor);
    sum = tensor.item();
    gathered = outputs[0].to_vector();
  });
  CHECK(word(report) == "ok");
  CHECK(sum == 3);
  CHECK(gathered == std::vector<double>{3});
}

TEST_CASE("groups of different sizes work side by side", "[simulate][fiber]") {
  Options options = gloo(5);
  options.groups = {{"pair", {1, 0}}, {"rest", {2, 3, 4}}};
  std::vector<double> sums(5);
  const Report report = run(options, [&](Rank rank) {
    const Tensor tensor = number(1);
    const ProcessGroup mine = find_group(rank < 2 ? "pair" : "rest");
    for (int i = 0; i < (rank < 2 ? 3 : 2); ++i) {
      all_reduce(tensor, {.group = mine});
    }
    barrier();
    sums[static_cast<std::size_t>(rank)] = tensor.item();
  });
  CHECK(word(report) == "ok");
  CHECK(sums == std::vector<double>{8, 8, 9, 9, 9});
}

TEST_CASE("a call on a foreign group warns, returns at once and leaves the group in step",
          "[simulate][fiber]") {
  Options options = gloo(3);
  options.groups = {{"pair", {0, 1}}};
  const Report report = run(options, [](Rank) { barrier({.group = find_group("pair")}); });
  CHECK(word(report) == "ok");
  REQUIRE(report.output.size() == 1);
  CHECK(report.output[0].warning);
  CHECK(report.output[0].rank == 2);
}

TEST_CASE("an unknown group is a null handle", "[simulate][fiber]") {
  bool found = true;
  run(gloo(1), [&](Rank) { found = static_cast<bool>(find_group("nowhere")); });
  CHECK_FALSE(found);
}

// ---- Asynchronous calls ----

TEST_CASE("a Work may be waited for twice, and asked in between", "[simulate][fiber]") {
  bool before = true;
  bool after = false;
  const Report report = run(gloo(2), [&](Rank rank) {
    const Tensor tensor = number(1);
    const Work work = all_reduce(tensor, {.async_op = true});
    if (rank == 0) {
      before = work.is_completed();
    }
    work.wait();
    work.wait();
    after = work.is_completed();
    barrier();
    work.wait();  // its slot has been freed
  });
  CHECK(word(report) == "ok");
  CHECK_FALSE(before);
  CHECK(after);
}

TEST_CASE("an asynchronous call nobody waits for still happens", "[simulate][fiber]") {
  std::vector<double> sums(2);
  const Report report = run(gloo(2), [&](Rank rank) {
    const Tensor tensor = number(rank + 1);
    all_reduce(tensor, {.async_op = true});
    barrier();
    sums[static_cast<std::size_t>(rank)] = tensor.item();
  });
  CHECK(word(report) == "ok");
  CHECK(sums == std::vector<double>{3, 3});
}

TEST_CASE("a rank may end with calls in flight that never complete", "[simulate][fiber]") {
  const Report report = run(gloo(2), [](Rank rank) {
    if (rank == 0) {
      all_reduce(number(1), {.async_op = true});
    }
  });
  CHECK(word(report) == "resource_leak");
  CHECK(report.of(0).state == State::finished);
}

TEST_CASE("tensors dropped while a call is in flight live as long as it", "[simulate][fiber]") {
  std::vector<double> sums(3);
  const Report report = run(gloo(3), [&](Rank rank) {
    Tensor kept;
    Work work;
    {
      Tensor tensor = Tensor::of({rank + 1.0, 2.0});
      if (rank == 2) {
        kept = tensor;
      }
      work = all_reduce(tensor, {.async_op = true});
    }
    std::vector<Tensor> noise(20, Tensor::of({-1.0, -2.0}));  // would reuse freed storage
    for (Tensor& tensor : noise) {
      tensor = tensor.clone();
    }
    compute(microsecond * rank);
    work.wait();
    sums[static_cast<std::size_t>(rank)] = kept ? kept.at(0) : noise.back().at(0);
  });
  CHECK(word(report) == "ok");
  CHECK(sums == std::vector<double>{-1, -1, 6});
}

TEST_CASE("lists destroyed after an asynchronous all_gather do not matter", "[simulate][fiber]") {
  std::vector<std::vector<double>> gathered(3);
  const Report report = run(gloo(3), [&](Rank rank) {
    TensorList handles;
    Work work;
    {
      const TensorList outputs{number(0), number(0), number(0)};
      handles = outputs;
      work = all_gather(outputs, number(rank + 1), {.async_op = true});
    }
    compute(microsecond * (3 - rank));
    work.wait();
    for (const Tensor& tensor : handles) {
      gathered[static_cast<std::size_t>(rank)].push_back(tensor.item());
    }
  });
  CHECK(word(report) == "ok");
  CHECK(gathered == std::vector<std::vector<double>>(3, {1, 2, 3}));
}

TEST_CASE("hundreds of calls in flight complete in order", "[simulate][fiber]") {
  std::vector<double> results;
  const Report report = run(gloo(2), [&](Rank rank) {
    std::vector<Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 300; ++i) {
      tensors.push_back(number(i));
      works.push_back(all_reduce(tensors.back(), {.async_op = true}));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) {
      work->wait();
    }
    if (rank == 1) {
      for (const Tensor& tensor : tensors) {
        results.push_back(tensor.item());
      }
    }
  });
  CHECK(word(report) == "ok");
  REQUIRE(results.size() == 300);
  CHECK(results[0] == 0);
  CHECK(results[299] == 598);
}

TEST_CASE("a program that waits for what is not simulated goes on with every event", "[simulate][fiber]") {
  bool is_unlocked = false;
  Time went_on = 0;
  const Report report = run(gloo(2), [&](Rank rank) {
    if (rank == 1) {
      compute(5 * millisecond);
      is_unlocked = true;
    }
    while (!is_unlocked) {
      compute(until_next_event);
    }
    went_on = std::max(went_on, this_rank().backend->now());
    all_reduce(number(rank));
  });
  CHECK(word(report) == "ok");
  CHECK(went_on == 5 * millisecond);
}

TEST_CASE("waiting for what is not simulated takes no time if the other ranks wait", "[simulate][fiber]") {
  Options options = gloo(3);
  options.timeout = second;
  Time went_on = -1;
  const Report report = run(options, [&](Rank rank) {
    for (int i = 0; i < 10 && rank == 0; ++i) {
      compute(until_next_event);
      went_on = this_rank().backend->now();
    }
    all_reduce(number(rank));
  });
  CHECK(word(report) == "ok");
  CHECK(went_on == 0);
}

TEST_CASE("a run can end while a rank waits for what is not simulated", "[simulate][fiber]") {
  Options options = gloo(2);
  options.limits.simulated_time = second;
  const Report report = run(options, [&](Rank rank) { compute(rank == 0 ? until_next_event : 2 * second); });
  CHECK(word(report) == "limit_reached");
}

// ---- Many runs ----

namespace {

std::uint64_t fingerprint_of_a_run() {
  Options options = gloo(16);
  options.timeline = true;
  const Report report = run(options, [](Rank rank) {
    for (int i = 0; i < 10; ++i) {
      compute((rank + 1) * microsecond);
      all_reduce(number(rank));
    }
  });
  return report.timeline.fingerprint();
}

}  // namespace

TEST_CASE("two simulations one after the other do not know of each other", "[simulate][fiber]") {
  CHECK(fingerprint_of_a_run() == fingerprint_of_a_run());
}

TEST_CASE("two simulations at the same time do not know of each other", "[simulate][fiber]") {
  const std::uint64_t alone = fingerprint_of_a_run();
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::thread a([&] { first = fingerprint_of_a_run(); });
  std::thread b([&] { second = fingerprint_of_a_run(); });
  a.join();
  b.join();
  CHECK(first == alone);
  CHECK(second == alone);
}

TEST_CASE("a simulation inside a rank program is one of its own", "[simulate][fiber]") {
  // The inner run takes no simulated time of the outer run, and its deadlock does not affect that.
  std::vector<std::string> inner(2);
  std::vector<Rank> who(2, -1);
  const Report outer = run(gloo(2), [&](Rank rank) {
    const auto mine = static_cast<std::size_t>(rank);
    barrier();
    inner[mine] = word(run(gloo(3), [&](Rank inner_rank) {
      if (inner_rank != rank) {
        barrier();
      }
    }));
    who[mine] = get_rank();
    barrier();
  });
  CHECK(word(outer) == "ok");
  CHECK(inner == std::vector<std::string>{"deadlock", "deadlock"});
  CHECK(who == std::vector<Rank>{0, 1});
  CHECK(outer.ops == 4);
}

TEST_CASE("the seed cannot be seen in the result of pure collectives", "[simulate][fiber]") {
  Options options = gloo(16);
  options.timeline = true;
  const auto fingerprint = [&](std::uint64_t seed) {
    options.seed = seed;
    return run(options,
               [](Rank rank) {
                 for (int i = 0; i < 4 + (rank != 9); ++i) {
                   all_reduce(number(rank));
                 }
               })
        .timeline.fingerprint();
  };
  const std::uint64_t first = fingerprint(0);
  for (std::uint64_t seed = 1; seed < 10; ++seed) {
    CHECK(fingerprint(seed) == first);
  }
}

TEST_CASE("how long a disagreement takes does not depend on who came first", "[simulate][fiber]") {
  Options options = gloo(2);
  std::vector<Time> times;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    options.seed = seed;
    times.push_back(run(options, [](Rank rank) {
                      const Tensor tensor = Tensor::ones({rank == 0 ? 1'000'000 : 4});
                      all_reduce(tensor);
                      compute(microsecond);
                    }).simulated_time);
  }
  CHECK(times == std::vector<Time>(10, times[0]));
}

TEST_CASE("what a mismatch does on gloo depends on whether one of its functions runs both",
          "[simulate][fiber]") {
  const auto on_backend = [](bool scatters) {
    const Report report = run(gloo(3), [scatters](Rank rank) {
      const Tensor many = Tensor::ones({6});
      if (rank == 2 && scatters) {
        reduce_scatter_tensor(Tensor::ones({2}), many);
      } else if (rank == 2) {
        broadcast(many, 0);
      } else {
        all_reduce(number(1));
      }
    });
    CHECK(finding(report).kind == FindingKind::op_mismatch);
    return finding(report).on_backend;
  };
  CHECK_THAT(on_backend(false), StartsWith("different operations never exchange data"));
  CHECK_THAT(on_backend(true), StartsWith("Gloo has one algorithm for these operations"));
}

TEST_CASE("a hundred thousand ranks hang, and one of them is found", "[simulate][fiber]") {
  const Report report = run(gloo(100'000), [](Rank rank) {
    barrier();
    if (rank != 54'321) {
      all_reduce(number(1));
    }
  });
  CHECK(word(report) == "deadlock");
  CHECK(to_string(finding(report).culprits) == "54321");
  CHECK(report.ranks.size() == 2);
}

// ---- Devices ----

TEST_CASE("who shares a GPU is the same in every schedule", "[simulate][fiber]") {
  Options options{.world_size = 4};
  options.devices.assign(4, Device{DeviceType::cuda, 0});
  options.devices[2] = {DeviceType::cuda, 1};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    options.seed = seed;
    const Report report = run(options, [&](Rank rank) {
      all_reduce(Tensor::ones({1}, Dtype::float32, options.devices[static_cast<std::size_t>(rank)]));
    });
    REQUIRE(word(report) == "device_mismatch");
    CHECK(finding(report).kind == FindingKind::duplicate_gpu);
    CHECK(to_string(finding(report).culprits) == "1,3");
    CHECK_THAT(finding(report).headline, Contains("rank 0"));
    CHECK(report.of(0).state == State::waiting);
    CHECK(report.of(1).state == State::raised);
    CHECK(report.of(2).state == State::waiting);
    CHECK(report.of(3).state == State::raised);
  }
}

TEST_CASE("the same GPU number on another host is another GPU", "[simulate][fiber]") {
  Options options{.world_size = 2, .ranks_per_host = 1};
  options.devices.assign(2, Device{DeviceType::cuda, 0});
  CHECK(word(run(options, [&](Rank) {
          all_reduce(Tensor::ones({1}, Dtype::float32, {DeviceType::cuda, 0}));
        })) == "ok");
}

TEST_CASE("a rank that changes its GPU within a group is a stray", "[simulate][fiber]") {
  const Report report = run({.world_size = 2}, [](Rank rank) {
    const Device own{DeviceType::cuda, static_cast<std::int16_t>(rank)};
    all_reduce(Tensor::ones({1}, Dtype::float32, own));
    all_reduce(Tensor::ones({1}, Dtype::float32, {DeviceType::cuda, 0}));
  });
  CHECK(word(report) == "device_mismatch");
  CHECK(finding(report).kind == FindingKind::stray_device);
  CHECK(to_string(finding(report).culprits) == "1");
}

// ---- Options ----

TEST_CASE("impossible options are refused before anything runs", "[simulate]") {
  bool ran = false;
  const auto refuses = [&](const Options& options, const char* because) {
    CHECK_THROWS_WITH(run(options, [&](Rank) { ran = true; }), Contains(because));
    CHECK_THROWS_AS(run(options, [&](Rank) { ran = true; }), std::invalid_argument);
  };
  refuses({.world_size = 0}, "world_size");
  refuses({.world_size = -3}, "world_size");
  refuses({.world_size = 2, .backend = "mpi"}, "mpi");
  refuses({.world_size = 2, .devices = {cpu_device}}, "one device per rank");
  refuses({.world_size = 2, .groups = {{"g", {}}}}, "no ranks");
  refuses({.world_size = 2, .groups = {{"g", {0, 2}}}}, "outside 0-1");
  refuses({.world_size = 2, .groups = {{"g", {-1}}}}, "outside 0-1");
  refuses({.world_size = 2, .groups = {{"g", {1, 1}}}}, "twice");
  refuses({.world_size = 2, .groups = {{"world", {0}}}}, "world");
  refuses({.world_size = 2, .groups = {{"", {0}}}}, "name");
  refuses({.world_size = 2, .groups = {{"g", {0}}, {"g", {1}}}}, "g");
  refuses({.world_size = 2, .limits = {.ops = 0}}, "limits");
  refuses({.world_size = 2, .limits = {.simulated_time = -1}}, "limits");
  refuses({.world_size = 2, .timeout = -1}, "timeout");
  refuses({.world_size = 2, .ranks_per_host = -1}, "ranks_per_host");
  CHECK_FALSE(ran);
}

TEST_CASE("a program that is no function is refused", "[simulate]") {
  CHECK_THROWS_AS(run(gloo(2), Program()), std::invalid_argument);
}

}  // namespace rollcall::sim::simulate_test
