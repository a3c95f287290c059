// Hosts and streams on NCCL: a call returns when it is queued, and the GPU works in order.

#include <string>
#include <vector>

#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::streams_test {
namespace {

Report run(Rank ranks, const sim::Program& program, sim::Options options = {}) {
  options.world_size = ranks;
  options.backend = "nccl";
  return sim::run(options, program);
}

Tensor ones() { return Tensor::ones({4}, Dtype::float32, this_rank().device); }
Tensor number(double value) { return Tensor::full({1}, value, Dtype::float32, this_rank().device); }

std::string kind(const Report& report) { return std::string(verdict_word(report.verdict)); }

std::vector<std::string> lines_of(const Report& report, Rank rank) {
  std::vector<std::string> lines;
  for (const OutputLine& line : report.output) {
    if (line.rank == rank) {
      lines.push_back(line.text);
    }
  }
  return lines;
}

void say(const std::string& text) { this_rank().backend->observer().print(text); }

}  // namespace

TEST_CASE("on nccl the host runs past a collective that never completes", "[streams][fiber]") {
  const Report report = run(2,
                            [](Rank rank) {
                              if (rank == 0) {
                                all_reduce(ones());
                                say("queued");
                                synchronize();
                                say("never");
                              }
                            },
                            {.eager_communicators = true});
  CHECK(kind(report) == "deadlock");
  CHECK(lines_of(report, 0) == std::vector<std::string>{"queued"});
}

TEST_CASE("item() waits for what is queued, and sees the result", "[streams][fiber]") {
  double seen = 0;
  const Report report = run(2, [&](Rank rank) {
    const Tensor tensor = number(rank + 1);
    compute(rank * millisecond);
    all_reduce(tensor);
    seen = tensor.item();
  });
  CHECK(kind(report) == "ok");
  CHECK(seen == 3);
}

TEST_CASE("a tensor changed after the call does not change what was sent", "[streams][fiber]") {
  std::vector<double> sums;
  const Report report = run(2, [&](Rank rank) {
    const Tensor tensor = number(1);
    compute((1 - rank) * millisecond);
    all_reduce(tensor);
    tensor.fill_(10);
    all_reduce(tensor);
    sums.push_back(tensor.item());
  });
  CHECK(kind(report) == "ok");
  CHECK(sums == std::vector<double>{20, 20});
}

// Ranks 0 and 1 queue more than their GPUs take, while ranks 2 and 3 begin and end batches of their own.
TEST_CASE("a host whose GPU takes no more stops before a batch, not within it", "[streams][fiber]") {
  constexpr int more_than_a_gpu_takes = 600;
  const Report report =
      run(4,
          [](Rank rank) {
            const Rank other = rank / 2 * 2 + 1 - rank % 2;
            for (int i = 0; i < more_than_a_gpu_takes; ++i) {
              if (rank >= 2) {
                compute(millisecond);
              }
              launch_kernel(rank < 2 ? millisecond : millisecond / 2);
              Tensor out = ones();
              Tensor in = ones();
              const PointToPoint batch[] = {{OpKind::send, out, other}, {OpKind::recv, in, other}};
              batch_isend_irecv(batch);
            }
          },
          {.eager_communicators = true});
  CHECK(kind(report) == "ok");
}

TEST_CASE("a barrier's host waits", "[streams][fiber]") {
  bool early = false;
  bool slow_is_there = false;
  run(2, [&](Rank rank) {
    if (rank == 1) {
      compute(5 * millisecond);
      slow_is_there = true;
    }
    barrier();
    early = early || !slow_is_there;
  });
  CHECK_FALSE(early);
}

TEST_CASE("two groups in opposite orders get through when nothing orders their calls", "[streams][fiber]") {
  sim::Options options;
  options.groups = {{"a", {0, 1}}, {"b", {0, 1}}};
  options.eager_communicators = true;
  const auto program = [](bool wait_at_once) {
    return [wait_at_once](Rank rank) {
      const char* const mine = rank == 0 ? "a" : "b";
      const char* const other = rank == 0 ? "b" : "a";
      const Tensor x = ones();
      const Tensor y = ones();
      const Work work = all_reduce(x, {.group = find_group(mine), .async_op = true});
      if (wait_at_once) {
        work.wait();
      }
      all_reduce(y, {.group = find_group(other), .async_op = true}).wait();
      work.wait();
    };
  };
  CHECK(kind(run(2, program(false), options)) == "ok");
  CHECK(kind(run(2, program(true), options)) == "deadlock");
  SECTION("and do not when the GPU has room for one kernel") {
    options.comm_slots = 1;
    CHECK(kind(run(2, program(false), options)) == "deadlock");
  }
}

TEST_CASE("a synchronization between two groups' calls orders them", "[streams][fiber]") {
  sim::Options options;
  options.groups = {{"a", {0, 1}}, {"b", {0, 1}}};
  const Report report = run(
      2,
      [](Rank rank) {
        const Tensor x = ones();
        const Tensor y = ones();
        const Work one = all_reduce(x, {.group = find_group(rank == 0 ? "a" : "b"), .async_op = true});
        synchronize();
        const Work two = all_reduce(y, {.group = find_group(rank == 0 ? "b" : "a"), .async_op = true});
        one.wait();
        two.wait();
      },
      options);
  CHECK(kind(report) == "deadlock");
}

TEST_CASE("kernels of different streams overlap, those of one stream do not", "[streams][fiber]") {
  const auto time_of = [](bool one_stream) {
    return run(1,
               [one_stream](Rank) {
                 launch_kernel(3 * millisecond);
                 const StreamScope scope(one_stream ? current_stream() : new_stream());
                 launch_kernel(3 * millisecond);
                 synchronize();
               })
        .simulated_time;
  };
  CHECK(time_of(true) == 6 * millisecond);
  CHECK(time_of(false) == 3 * millisecond);
}

TEST_CASE("an event makes one stream wait for another", "[streams][fiber]") {
  const Report report = run(1, [](Rank) {
    Event done;
    {
      const StreamScope scope(new_stream());
      launch_kernel(3 * millisecond);
      done.record();
    }
    done.wait();
    launch_kernel(1 * millisecond);
    synchronize(current_stream());
  });
  CHECK(report.simulated_time == 4 * millisecond);
}

TEST_CASE("a host that runs far ahead waits for its GPU", "[streams][fiber]") {
  const Report report = run(2, [](Rank rank) {
    if (rank == 0) {
      for (int i = 0; i < 5000; ++i) {
        all_reduce(ones());
      }
      say("unreachable");
    }
  });
  CHECK(kind(report) == "deadlock");
  CHECK(lines_of(report, 0).empty());
}

TEST_CASE("2,000 calls in flight over 3 groups and 4 streams complete", "[streams][fiber]") {
  sim::Options options;
  options.groups = {{"a", {0, 1, 2, 3}}, {"b", {0, 1}}, {"c", {2, 3}}};
  std::vector<double> sums(4);
  const Report report = run(
      4,
      [&](Rank rank) {
        const ProcessGroup groups[] = {world(), find_group("a"), find_group(rank < 2 ? "b" : "c")};
        std::vector<Stream> streams = {current_stream(), new_stream(), new_stream(), new_stream()};
        std::vector<Tensor> tensors;
        std::vector<Work> works;
        for (std::size_t i = 0; i < 2000; ++i) {
          const StreamScope scope(streams[i % 4]);
          tensors.push_back(number(1));
          works.push_back(all_reduce(tensors.back(), {.group = groups[i % 3], .async_op = true}));
        }
        for (const Work& work : works) {
          work.wait();
        }
        for (const Tensor& tensor : tensors) {
          sums[static_cast<std::size_t>(rank)] += tensor.item();
        }
      },
      options);
  CHECK(kind(report) == "ok");
  CHECK(sums == std::vector<double>(4, 667 * 4 + 667 * 4 + 666 * 2));
}

TEST_CASE("a call that nobody waits for does not keep its process", "[streams][fiber]") {
  const Report report = run(2,
                            [](Rank rank) {
                              if (rank == 0) {
                                all_reduce(ones(), {.async_op = true});
                              }
                            },
                            {.eager_communicators = true});
  CHECK(kind(report) != "deadlock");
}

}  // namespace rollcall::streams_test
