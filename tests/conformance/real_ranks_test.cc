// Real processes: every collective bit by bit at several world sizes, the mistakes that Gloo cannot see, and what a
// supervisor must do whatever its ranks do.

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/launch/launch.h"
#include "real/process/process.h"
#include "sim/dist.h"
#include "tests/catch.h"
#include "tests/conformance/real_runs.h"

namespace rollcall::real_ranks_test {
namespace {

// Values that differ from rank to rank and from element to element, small enough to be exact.
Tensor numbers(std::int64_t numel, Dtype dtype, Rank rank) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < numel; ++i) {
    values.push_back(static_cast<double>((i * 7 + rank * 3) % 5 + 1));
  }
  return Tensor::of(values, dtype);
}

TensorList many(std::int64_t count, std::int64_t numel, Dtype dtype) {
  TensorList list;
  for (std::int64_t i = 0; i < count; ++i) {
    list.push_back(Tensor::zeros({numel}, dtype));
  }
  return list;
}

void reduce_everything(Rank rank) {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::int8, Dtype::uint8,
                            Dtype::int32, Dtype::int64}) {
    for (std::size_t op = 0; op < reduce_op_count; ++op) {
      const auto reduction = static_cast<ReduceOp>(op);
      if (reduction == ReduceOp::avg || reduction == ReduceOp::premul_sum || !supports(reduction, dtype)) {
        continue;
      }
      for (const std::int64_t numel : {1, 5, 64, 1000}) {
        all_reduce(numbers(numel, dtype, rank), {.op = reduction});
        reduce(numbers(numel, dtype, rank), get_world_size() - 1, {.op = reduction});
      }
    }
  }
}

void move_everything(Rank rank) {
  const Rank size = get_world_size();
  for (const Dtype dtype : {Dtype::float32, Dtype::float16, Dtype::int64, Dtype::uint8}) {
    for (const std::int64_t numel : {1, 3, 257}) {
      const Tensor mine = numbers(numel, dtype, rank);
      const TensorList lists = many(size, numel, dtype);
      broadcast(mine.clone(), size - 1);
      all_gather(lists, mine);
      gather(mine, rank == 1 ? many(size, numel, dtype) : TensorList(), 1);
      scatter(mine.clone(), rank == 1 ? lists : TensorList(), 1);
      all_to_all_single(Tensor::zeros({numel * size}, dtype), numbers(numel * size, dtype, rank));
      barrier();
    }
  }
}

// Floats whose sums depend on the order of additions, because the simulator models Gloo's ring.
void add_fractions(Rank rank) {
  for (const std::int64_t numel : {1, 7, 100, 3000}) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < numel; ++i) {
      values.push_back(1.0 / static_cast<double>(3 + i * 11 % 97 + rank * 5));
    }
    all_reduce(Tensor::of(values));
  }
}

void pass_messages(Rank rank) {
  const Rank size = get_world_size();
  const Tensor token = Tensor::full({3}, rank);
  const Work sent = isend(token, (rank + 1) % size, {.tag = 5});
  const Tensor received = Tensor::zeros({3});
  recv(received, (rank + size - 1) % size, {.tag = 5});
  sent.wait();
  if (rank == 0) {
    for (Rank from = 1; from < size; ++from) {
      const Tensor any = Tensor::zeros({1});
      const Rank source = recv(any, std::nullopt, {.tag = from});
      print(fmt::format("{} from {}", any.item(), source));
    }
  } else {
    send(Tensor::full({1}, rank), 0, {.tag = rank});
  }
}

void overlap_calls(Rank rank) {
  std::vector<Work> works;
  TensorList tensors;
  for (int i = 0; i < 12; ++i) {
    tensors.push_back(Tensor::full({64}, rank + i));
    works.push_back(all_reduce(tensors.back(), {.async_op = true}));
  }
  barrier();
  for (std::size_t i = works.size(); i > 0; --i) {
    works[i - 1].wait();
    print(fmt::format("{}", tensors[i - 1].at(0)));
  }
}

void join_uneven_inputs(Rank rank) {
  struct Sum final : Joinable {
    void step() {
      Join::notify_join_context(*this);
      all_reduce(Tensor::ones({4}));
    }
    std::unique_ptr<JoinHook> join_hook(const Kwargs&) override {
      struct Hook final : JoinHook {
        void main_hook() override { all_reduce(Tensor::zeros({4})); }
      };
      return std::make_unique<Hook>();
    }
    Device join_device() const override { return cpu_device; }
    ProcessGroup join_process_group() const override { return world(); }
  } sum;
  Join(Joinables{sum}).run([&] {
    for (Rank i = 0; i < 3 + rank; ++i) {
      sum.step();
    }
  });
}

struct NamedBody {
  const char* name;
  void (*body)(Rank);
};

real::Options real_options(Rank world_size) {
  return {.world_size = world_size, .patience = 300 * millisecond, .time_scale = 1};
}

bool has_children() { return !(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD); }

// A separate folder for temporary files, which must be empty at the end.
class OwnTemporaries {
 public:
  OwnTemporaries() { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~OwnTemporaries() { ::unsetenv("TMPDIR"); }
  bool are_gone() const { return std::filesystem::is_empty(folder_.path()); }

 private:
  real::PrivateFolder folder_;
};

// Checks a mistake that Gloo does not see: the run must end with the class of outcome that the simulator predicts, at
// 2, 4 and 8 ranks, within the deadline, and leave nothing behind.
void check_mistake(std::string_view verdict, sim::Program body, bool exits = false) {
  if (!test::has_gloo()) {
    return;
  }
  const OwnTemporaries temporaries;
  std::vector<test::NamedRun> runs;
  for (const Rank size : {2, 4, 8}) {
    runs.push_back({fmt::format("at {} ranks", size),
                    {.world_size = size, .backend = "gloo", .finished_ranks_exit = exits},
                    body});
  }
  CHECK(test::differences(runs) == "");
  real::Options options = real_options(4);
  options.finished_ranks_exit = exits;
  CHECK(verdict_word(real::run(options, std::move(body)).report.verdict) == verdict);
  CHECK_FALSE(has_children());
  CHECK(temporaries.are_gone());
}

}  // namespace

TEST_CASE("every collective gives the simulator's bits on 2, 4 and 8 real ranks", "[fiber][real]") {
  if (!test::has_gloo()) {
    return;
  }
  const NamedBody bodies[] = {{"reductions", reduce_everything}, {"moves", move_everything},
                              {"fractions", add_fractions},      {"messages", pass_messages},
                              {"overlap", overlap_calls},        {"join", join_uneven_inputs}};
  std::vector<test::NamedRun> runs;
  for (const Rank size : {2, 4, 8}) {
    for (const NamedBody& body : bodies) {
      runs.push_back({fmt::format("{} at {} ranks", body.name, size),
                      {.world_size = size, .backend = "gloo"},
                      body.body});
    }
  }
  CHECK(test::differences(runs) == "");
}

// The eight kinds of mistakes that Gloo does not report as such.

TEST_CASE("real ranks with another count end as predicted", "[fiber][real]") {
  check_mistake("mismatch", [](Rank rank) { all_reduce(Tensor::ones({rank == 1 ? 16 : 8})); });
}

TEST_CASE("real ranks of which one is missing end as predicted", "[fiber][real]") {
  check_mistake("deadlock", [](Rank rank) {
    if (rank != 1) {
      all_reduce(Tensor::ones({8}));
    }
  });
}

TEST_CASE("real ranks of which one exits early end as predicted", "[fiber][real]") {
  check_mistake(
      "deadlock",
      [](Rank rank) {
        if (rank != 1) {
          all_reduce(Tensor::ones({8}));
        }
      },
      true);
}

TEST_CASE("real ranks with a different operation end as predicted", "[fiber][real]") {
  check_mistake("mismatch", [](Rank rank) {
    if (rank == 1) {
      barrier();
    } else {
      all_reduce(Tensor::ones({8}));
    }
  });
}

TEST_CASE("real ranks with another tag end as predicted", "[fiber][real]") {
  check_mistake("deadlock", [](Rank rank) {
    if (rank == 0) {
      send(Tensor::ones({1}), 1, {.tag = 1});
    } else if (rank == 1) {
      recv(Tensor::ones({1}), 0, {.tag = 2});
    }
  });
}

TEST_CASE("real ranks with another reduction end as predicted", "[fiber][real]") {
  check_mistake("mismatch", [](Rank rank) {
    const Tensor tensor = Tensor::full({8}, rank + 2);
    all_reduce(tensor, {.op = rank == 1 ? ReduceOp::product : ReduceOp::sum});
    print(to_string(tensor));
  });
}

TEST_CASE("real ranks with a different dtype of the same size end as predicted", "[fiber][real]") {
  check_mistake("mismatch", [](Rank rank) {
    const Tensor tensor = Tensor::full({8}, rank + 1, rank == 1 ? Dtype::int32 : Dtype::float32);
    all_reduce(tensor);
    print(to_string(tensor));
  });
}

TEST_CASE("real ranks with a different root end as predicted", "[fiber][real]") {
  check_mistake("mismatch", [](Rank rank) {
    const Tensor tensor = Tensor::full({8}, rank);
    broadcast(tensor, rank == 1 ? 1 : 0);
    print(to_string(tensor));
  });
}

TEST_CASE("a rank killed inside a collective is named first, and nothing is left behind", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const OwnTemporaries temporaries;
  const Report report = real::run(real_options(4), [](Rank rank) {
                          all_reduce(Tensor::ones({8}));
                          const Work work = all_reduce(Tensor::ones({1 << 20}), {.async_op = true});
                          if (rank == 2) {
                            ::kill(::getpid(), SIGKILL);
                          }
                          work.wait();
                          all_reduce(Tensor::ones({8}));
                        }).report;
  const Finding& finding = std::get<Deadlock>(report.verdict).finding;
  CHECK(finding.kind == FindingKind::rank_crashed);
  CHECK(finding.culprits == RankSet{2});
  CHECK_THAT(finding.headline, StartsWith("rank 2 died"));
  CHECK_THAT(report.of(2).exception, StartsWith("SIGKILL: while it was in all_reduce #1 on world"));
  CHECK_FALSE(has_children());
  CHECK(temporaries.are_gone());
}

TEST_CASE("the deadline ends real ranks that are still at work", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const OwnTemporaries temporaries;
  real::Options options = real_options(2);
  options.deadline = 400 * millisecond;
  const Report report = real::run(options, [](Rank rank) {
                          if (rank == 0) {
                            barrier();
                          }
                          compute(3600 * second);
                        }).report;
  CHECK(kind_of(report.verdict) == FindingKind::deadline);
  CHECK(report.of(0).state == RankClass::State::waiting);
  CHECK(report.of(1).state == RankClass::State::running);
  CHECK_FALSE(has_children());
  CHECK(temporaries.are_gone());
}

TEST_CASE("a real rank that never ends its loop is stopped by the limit of steps", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  real::Options options = real_options(2);
  options.ops = 100;
  const Report report = real::run(options, [](Rank) {
                          for (;;) {
                            compute(0);
                          }
                        }).report;
  CHECK(kind_of(report.verdict) == FindingKind::ops);
}

TEST_CASE("real ranks time out with Gloo's own words, and the missing one is named", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  real::Options options = real_options(2);
  options.patience = 20 * second;
  options.timeout = 200 * millisecond;
  const Report report = real::run(options, [](Rank rank) {
                          if (rank == 0) {
                            all_reduce(Tensor::ones({8}));
                          }
                        }).report;
  CHECK(std::get<Deadlock>(report.verdict).finding.culprits == RankSet{1});
  CHECK_THAT(report.of(0).exception, Contains("Timed out waiting 200ms for"));
}

TEST_CASE("a child process ends with its owner, or before", "[real]") {
  {
    const real::ChildProcess child([] {
      for (;;) {
        std::this_thread::sleep_for(std::chrono::hours(1));
      }
    });
  }
  CHECK_FALSE(has_children());
  real::ChildProcess child([] { ::_exit(7); });
  CHECK(WEXITSTATUS(child.wait()) == 7);
}

}  // namespace rollcall::real_ranks_test
