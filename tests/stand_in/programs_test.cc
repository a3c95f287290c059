// Programs that no shipped scenario covers: compares the NCCL backend on the stand-in with the simulator.

#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/core.h>

#include "real/launch/launch.h"
#include "real/nccl/throughput.h"
#include "scenarios/compare/claims.h"
#include "scenarios/compare/simulated_facts.h"
#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"
#include "tests/stand_in/use_stand_in.h"

namespace rollcall::programs_test {
namespace {

using compare::Claim;
using test::UseStandIn;

Tensor numbers(std::int64_t count, double value, Dtype dtype = Dtype::float32) {
  return Tensor::full({count}, value, dtype, this_rank().device);
}

real::Options real_options(Rank ranks) {
  real::Options options{.world_size = ranks, .backend = "nccl", .deadline = 30 * second};
  for (Rank rank = 0; rank < ranks; ++rank) {
    options.devices.push_back({DeviceType::cuda, static_cast<std::int16_t>(rank)});
  }
  return options;
}

// Sends a tensor from rank 0 to rank 1.
void pass(Rank rank, const Tensor& tensor, const PointToPointOptions& options = {}) {
  if (rank == 0) {
    send(tensor, 1, options);
  } else {
    recv(tensor, 0, options);
  }
}

// Returns the claims that differ, one per line.
std::string differences(Rank ranks, const sim::Program& program, bool eager = false) {
  const compare::Facts simulated = compare::simulated_facts(
      sim::Options{.world_size = ranks, .backend = "nccl", .eager_communicators = eager}, program);
  real::Options options = real_options(ranks);
  options.eager_communicators = eager;
  const compare::Facts real = compare::facts_of_run(real::run(options, program));
  std::string text;
  for (const Claim& claim : compare::compare(simulated, real, "nccl")) {
    if (claim.judgement == Claim::Judgement::differs) {
      text += fmt::format("{}: simulated {}; real {}; {}\n", claim.about, claim.simulated, claim.real,
                          claim.because);
    }
  }
  return text;
}

// Returns the error with which a call was refused.
template <typename Call>
void print_refusal(const Call& call) {
  try {
    call();
    print("accepted");
  } catch (const Error& error) {
    print(std::string(error.type()) + ": " + error.what());
  }
}

}  // namespace

TEST_CASE("collectives of several tensors and of parts of different sizes have the simulator's results",
          "[fiber][real][stand-in]") {
  const UseStandIn libraries;
  CHECK(differences(3, [](Rank rank) {
          const double own = rank + 1;
          all_reduce_coalesced({numbers(3, own), numbers(5, 2 * own)});
          all_reduce(numbers(4, own), {.op = ReduceOp::premul_sum, .factor = 0.5});
          all_reduce(numbers(4, own), {.op = ReduceOp::avg});
          all_reduce(numbers(4, own, Dtype::int8), {.op = ReduceOp::max});
          all_reduce(numbers(4, own, Dtype::int64), {.op = ReduceOp::product});
          all_reduce(numbers(4, own, Dtype::float64), {.op = ReduceOp::min});
          reduce(numbers(4, own), 1);
          broadcast(numbers(4, own), 2);

          const auto three = [](std::int64_t step) {
            return TensorList{numbers(2, 0), numbers(2 + step, 0), numbers(2 + 2 * step, 0)};
          };
          all_gather(three(0), numbers(2, own));
          all_gather(three(1), numbers(2 + rank, own));
          reduce_scatter(numbers(2, 0), {numbers(2, own), numbers(2, own), numbers(2, own)});
          reduce_scatter(numbers(2 + rank, 0), {numbers(2, own), numbers(3, own), numbers(4, own)});
          gather(numbers(2, own), rank == 1 ? three(0) : TensorList{}, 1);
          scatter(numbers(2, 0), rank == 1 ? three(0) : TensorList{}, 1);
          all_to_all(three(0), {numbers(2, own), numbers(2, own + 1), numbers(2, own + 2)});
          all_to_all_single(numbers(3, 0), numbers(3, own));
          barrier();
        }) == "");
}

TEST_CASE("streams, events and kernels order calls as simulated", "[fiber][real][stand-in]") {
  const UseStandIn libraries;
  CHECK(differences(2, [](Rank rank) {
          const Tensor tensor = numbers(1024, rank + 1);
          const Stream side = new_stream();
          Event ready;
          launch_kernel(1 * millisecond);
          ready.record();
          {
            const StreamScope scope(side);
            ready.wait();
            launch_kernel(1 * millisecond);
            all_reduce(tensor);
          }
          Event done;
          {
            const StreamScope scope(side);
            done.record();
          }
          done.wait();
          done.synchronize();
          all_reduce(tensor);
          synchronize(side);
          synchronize();
          const Work work = all_reduce(tensor, {.async_op = true});
          work.wait(10 * second);
          print(work.is_completed() ? "completed" : "under way");
        }) == "");
}

TEST_CASE("hundreds of tensors that nobody keeps give their memory back", "[fiber][real][stand-in]") {
  const UseStandIn libraries;
  CHECK(differences(2, [](Rank rank) {
          for (int i = 0; i < 700; ++i) {
            all_reduce(numbers(16, rank + i));
          }
          const Tensor last = numbers(16, rank);
          all_reduce(last);
          print(fmt::format("{}", last.at(0)));
        }) == "");
}

TEST_CASE("what NCCL cannot do is refused as simulated", "[fiber][real][stand-in]") {
  const UseStandIn libraries;
  CHECK(differences(2, [](Rank rank) {
          print_refusal([&] { all_reduce(numbers(2, 1, Dtype::int16)); });
          print_refusal([&] { all_reduce(numbers(2, 1, Dtype::int32), {.op = ReduceOp::band}); });
          print_refusal([&] { monitored_barrier(); });
          print_refusal([&] { recv(numbers(2, 0)); });
          const ProcessGroup pair = new_group(RankList{0, 1});
          all_reduce(numbers(2, rank), {.group = pair});
          destroy_process_group(pair);
          print_refusal([&] { all_reduce(numbers(2, 1), {.group = pair}); });
        }) == "");
}

TEST_CASE("groups that are split, at once or by new_group, have the simulator's results",
          "[fiber][real][stand-in]") {
  const UseStandIn libraries;
  CHECK(differences(
            4,
            [](Rank rank) {
              all_reduce(numbers(4, rank), {.async_op = true});  // in progress when its group is split
              const ProcessGroup half = split_group({{0, 2}, {1, 3}});
              all_reduce(numbers(8, rank), {.group = half});
              const ProcessGroup alone = split_group({{0}}, {.parent = half});  // the others take part
              if (alone) {
                all_reduce(numbers(3, rank), {.group = alone});
              }
              const ProcessGroup low = new_group(RankList{0, 1});
              if (rank < 2) {
                all_reduce(numbers(5, rank), {.group = low});
                pass(rank, numbers(2, rank), {.group = low});
              }
              destroy_process_group();
            },
            true) == "");
}

TEST_CASE("what needs a communicator first makes it, of its two ranks or of all", "[fiber][real][stand-in]") {
  const UseStandIn libraries;
  CHECK(differences(3, [](Rank rank) {
          const Tensor tensor = numbers(2, rank);
          if (rank < 2) {
            pass(rank, tensor);  // rank 2 is not needed
          }
          print(fmt::format("{}", tensor.at(0)));
          const Tensor sent = numbers(2, rank);
          const Tensor received = numbers(2, 0);
          const PointToPoint batch[] = {{.kind = OpKind::send, .tensor = sent, .peer = (rank + 1) % 3},
                                        {.kind = OpKind::recv, .tensor = received, .peer = (rank + 2) % 3}};
          for (const Work& work : batch_isend_irecv(batch)) {
            work.wait();
          }
          print(fmt::format("{}", received.at(0)));
          all_reduce(received);
          destroy_process_group();
        }) == "");
}

TEST_CASE("a wait that gives up raises where it stands", "[real][stand-in]") {
  const UseStandIn libraries;
  const Report report = real::run(real_options(2), [](Rank rank) {
                          all_reduce(numbers(2, 1));  // connects
                          if (rank == 0) {
                            const Work work = all_reduce(numbers(2, 1), {.async_op = true});
                            work.wait(300 * millisecond);
                          } else {
                            compute(1 * second);
                          }
                        }).report;
  CHECK(report.of(0).state == RankClass::State::raised);
  CHECK_THAT(report.of(0).exception, Contains("timed out in blocking wait"));
  CHECK(report.of(1).state == RankClass::State::finished);
}

TEST_CASE("the watchdog ends a rank whose call takes longer than its group allows", "[real][stand-in]") {
  const UseStandIn libraries;
  real::Options options = real_options(2);
  options.timeout = 500 * millisecond;
  options.patience = 20 * second;  // nothing is proven before then
  const Report report = real::run(options, [](Rank rank) {
                          const Tensor tensor = numbers(2, 1);
                          barrier();  // connects, which the watchdog ignores
                          if (rank == 0) {
                            all_reduce(tensor);
                            print(fmt::format("{}", tensor.at(0)));
                          } else {
                            compute(3 * second);
                          }
                        }).report;
  CHECK(report.of(0).state == RankClass::State::crashed);
  CHECK_THAT(report.of(0).exception, Contains("Watchdog caught collective operation timeout"));
}

TEST_CASE("every operation that is measured back to back has a time of its own", "[real][stand-in]") {
  const UseStandIn libraries;
  for (const OpKind op : {OpKind::all_reduce, OpKind::broadcast, OpKind::reduce,
                          OpKind::all_gather_into_tensor, OpKind::reduce_scatter_tensor}) {
    if (!real::is_measured(op)) {
      continue;
    }
    CAPTURE(to_string(op));
    real::ThroughputOptions options{.op = op, .gpus = 2, .bytes = {1024, 65536}, .takes_stand_in = true};
    const std::vector<double> times = real::measure_throughput(options);
    REQUIRE(times.size() == 2);
    CHECK(std::ranges::all_of(times, [](double time) { return time > 0; }));
    options.takes_stand_in = false;
    CHECK_THROWS_WITH(real::measure_throughput(options), Contains("whose times mean nothing"));
  }
  CHECK_FALSE(real::is_measured(OpKind::send));
  CHECK_THROWS_AS(real::measure_throughput({.op = OpKind::send, .bytes = {8}}), std::invalid_argument);
  CHECK_THROWS_WITH(real::measure_throughput({.gpus = 100, .bytes = {8}, .takes_stand_in = true}),
                    Contains("100 wanted"));
}

}  // namespace rollcall::programs_test
