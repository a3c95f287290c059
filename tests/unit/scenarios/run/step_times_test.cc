// How long small programs of kernels and collectives take, to the nanosecond, with the arithmetic.
//
// Without a cluster, a call of two ranks takes 5 us and 1 us for each 25,000 bytes; an all_reduce moves them twice. So
// `reduce`, of 25 MB, takes 2,005 us, and a message of 25 MB 1,005 us. Four ranks: 10 us instead of 5.

#include <string>

#include <fmt/core.h>

#include "scenarios/run/runner.h"
#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::scenario::step_times_test {
namespace {

constexpr Duration us = microsecond;

const std::string reduce = R"({"all_reduce": {"numel": 6250000}})";
const std::string start_reduce = R"({"all_reduce": {"numel": 6250000, "async_op": true, "as": "w"}})";
constexpr Duration reduced = 2005 * us;

std::string kernel(int milliseconds, const std::string& more = "") {
  return fmt::format(R"({{"kernel": "{}ms"{}}})", milliseconds, more);
}

// Returns the time of a program of several ranks; `header` has more keys of the file.
Duration time_of(const std::string& program, const std::string& header = "", int ranks = 2) {
  const Report report = run(parse_scenario(
      fmt::format(R"({{"world_size": {}, {} "program": [{}]}})", ranks, header, program), "step.json"));
  REQUIRE(verdict_word(report.verdict) == "ok");
  return report.simulated_time;
}

// Returns the time of one step of a pipeline: the second one, because the first begins with a vote.
Duration step_of(const std::string& schedule, int ranks, int stages, int microbatches,
                 const std::string& forward, const std::string& backward) {
  const std::string header = fmt::format(
      R"("objects": {{"p": {{"kind": "pipeline", "schedule": "{}", "stages": {}, "microbatches": {},
           "input_args": [{{"numel": 1}}], "forward": [{}], "backward": [{}]}}}},)",
      schedule, stages, microbatches, forward, backward);
  const std::string once = R"({"step": "p"}, {"synchronize": true}, {"barrier": {}})";
  return time_of(once + ", " + once, header, ranks) - time_of(once, header, ranks);
}

}  // namespace

TEST_CASE("1: in line, every part takes its time", "[step-times][fiber]") {
  CHECK(time_of(kernel(10) + "," + reduce + "," + kernel(10)) == 10'000 * us + reduced + 10'000 * us);
}

TEST_CASE("2: compute is the host's, so it hides the call before it", "[step-times][fiber]") {
  CHECK(time_of(R"({"compute": "10ms"},)" + reduce + R"(, {"compute": "10ms"})") == 20'000 * us);
}

TEST_CASE("3: three steps in line take what a GPU takes, and host time hides all but one call",
          "[step-times][fiber]") {
  CHECK(time_of(R"({"repeat": 3, "do": [)" + kernel(10) + "," + reduce + "]}") ==
        3 * (10'000 * us + reduced));
  CHECK(time_of(R"({"repeat": 3, "do": [{"compute": "10ms"},)" + reduce + "]}") == 30'000 * us + reduced);
}

TEST_CASE("4: an asynchronous call runs beside the kernels behind it", "[step-times][fiber]") {
  // 10, then the call until 12.005 in parallel with a kernel until 15; the last kernel follows that.
  CHECK(time_of(kernel(10) + "," + start_reduce + "," + kernel(5) + R"(, {"wait": "w"},)" + kernel(1)) ==
        16'000 * us);
}

TEST_CASE("5: what the kernels beside it do not hide of a call is exposed", "[step-times][fiber]") {
  // 10, then the call until 12.005 in parallel with a kernel until 11; the last kernel waits for the call.
  CHECK(time_of(kernel(10) + "," + start_reduce + "," + kernel(1) + R"(, {"wait": "w"},)" + kernel(1)) ==
        10'000 * us + reduced + 1'000 * us);
}

TEST_CASE("6: calls of one group run one behind the other", "[step-times][fiber]") {
  CHECK(time_of(kernel(1) + "," + start_reduce + "," + start_reduce + R"(, {"synchronize": true})") ==
        1'000 * us + 2 * reduced);
}

TEST_CASE("7: calls of two groups run side by side", "[step-times][fiber]") {
  const std::string other =
      R"({"all_reduce": {"numel": 6250000, "group": "b", "async_op": true, "as": "v"}})";
  const std::string groups = R"("groups": {"b": [0, 1]}, "communicators": "eager",)";
  CHECK(time_of(kernel(1) + "," + start_reduce + "," + other + R"(, {"synchronize": true})", groups) ==
        1'000 * us + reduced);
}

TEST_CASE("8: a GPU with room for one collective runs them one behind the other", "[step-times][fiber]") {
  const std::string other =
      R"({"all_reduce": {"numel": 6250000, "group": "b", "async_op": true, "as": "v"}})";
  const std::string groups =
      R"("groups": {"b": [0, 1]}, "communicators": "eager", "device_model": {"comm_slots": 1},)";
  CHECK(time_of(kernel(1) + "," + start_reduce + "," + other + R"(, {"synchronize": true})", groups) ==
        1'000 * us + 2 * reduced);
}

TEST_CASE("9: streams run side by side", "[step-times][fiber]") {
  CHECK(time_of(kernel(4, R"(, "stream": "side")") + "," + kernel(3)) == 4'000 * us);
}

TEST_CASE("10: an event orders two streams", "[step-times][fiber]") {
  // The side stream is done at 4, and the kernel that waits for it takes 2.
  CHECK(time_of(kernel(4, R"(, "stream": "side")") + R"(, {"record_event": "e", "stream": "side"},)" +
                kernel(8, R"(, "stream": "side")") + "," + kernel(1) + R"(, {"wait_event": "e"},)" +
                kernel(2)) == 12'000 * us);
  CHECK(time_of(kernel(4, R"(, "stream": "side")") + R"(, {"record_event": "e", "stream": "side"},)" +
                kernel(1) + R"(, {"wait_event": "e"},)" + kernel(2)) == 6'000 * us);
}

TEST_CASE("11: a stream waits for all that another has been given", "[step-times][fiber]") {
  CHECK(time_of(kernel(4, R"(, "stream": "side")") + R"(, {"wait_stream": "side"},)" + kernel(3)) ==
        7'000 * us);
  CHECK(time_of(kernel(4) + R"(, {"wait_stream": "default", "stream": "side"},)" +
                kernel(3, R"(, "stream": "side")")) == 7'000 * us);
}

TEST_CASE("12: a collective on a stream of its own starts when that stream is there", "[step-times][fiber]") {
  CHECK(time_of(kernel(10) + R"(, {"all_reduce": {"numel": 6250000, "stream": "side"}})") == 10'000 * us);
}

TEST_CASE("13: a wait holds up the stream that it names", "[step-times][fiber]") {
  // The call is over at 2.005; the side stream then takes 1, and the default stream has been done since 1.
  CHECK(time_of(start_reduce + R"(, {"wait": "w", "stream": "side"},)" + kernel(1, R"(, "stream": "side")") +
                "," + kernel(1)) == reduced + 1'000 * us);
}

TEST_CASE("14: everybody waits for the slow rank", "[step-times][fiber]") {
  CHECK(time_of(kernel(10) + "," + reduce + "," + kernel(2),
                R"("faults": [{"kind": "slow", "ranks": "1", "factor": 1.5}],)") ==
        15'000 * us + reduced + 3'000 * us);
}

TEST_CASE("15: a host that comes late holds up its GPU", "[step-times][fiber]") {
  CHECK(time_of(R"({"if": "rank == 1", "do": [{"compute": "3ms"}]},)" + kernel(1) + "," + reduce) ==
        3'000 * us + 1'000 * us + reduced);
}

TEST_CASE("16: a message starts when both streams have come to it", "[step-times][fiber]") {
  const std::string meet = R"({"if": "rank == 0", "do": [)" + kernel(7) +
                           R"(, {"send": {"numel": 6250000, "dst": 1}}], "else": [)" + kernel(2) +
                           R"(, {"recv": {"numel": 6250000, "src": 0}}, {"kernel": "1ms"}]})";
  CHECK(time_of(meet, R"("communicators": "eager",)") == 7'000 * us + 1'005 * us + 1'000 * us);
}

TEST_CASE("17: buckets of a backward hide behind the kernels of the layers before", "[step-times][fiber]") {
  // Kernels end at 3, 6 and 9. The calls run from 3 to 5.005, from 6 to 8.005, and from 9 to 11.005: only the last one,
  // the first layer's, is exposed.
  std::string backward;
  for (int layer = 3; layer > 0; --layer) {
    backward += kernel(3) + R"(, {"all_reduce": {"numel": 6250000, "async_op": true, "as": "b)" +
                std::to_string(layer) + R"("}},)";
  }
  CHECK(time_of(backward + R"({"wait": "b3"}, {"wait": "b2"}, {"wait": "b1"})") == 9'000 * us + reduced);
}

TEST_CASE("18: a gather that may not run ahead waits for the memory of a layer", "[step-times][fiber]") {
  // Gathers take 1.005 (a broadcast). If two may be ahead, they end at 1.005, 2.010 and 3.015, and the layers take 4,
  // 0.5 and 0.5 from 1.005 on. With one ahead, the third gather starts when the first layer is over, at 5.005, and ends
  // at 6.010.
  const auto layers = [](const std::string& before_third) {
    const auto gather = [](int layer) {
      return fmt::format(R"({{"broadcast": {{"numel": 6250000, "src": 0, "stream": "gathers"}}}},
                             {{"record_event": "gathered{}", "stream": "gathers"}},)",
                         layer);
    };
    const auto layer = [](int index, const std::string& time) {
      return fmt::format(
          R"({{"wait_event": "gathered{0}"}}, {{"kernel": "{1}"}}, {{"record_event": "done{0}"}},)", index,
          time);
    };
    return gather(0) + gather(1) + layer(0, "4ms") + before_third + gather(2) + layer(1, "500us") +
           layer(2, "500us") + R"({"synchronize": true})";
  };
  CHECK(time_of(layers("")) == 6'005 * us);
  CHECK(time_of(layers(R"({"wait_event": "done0", "stream": "gathers"},)")) == 6'510 * us);
}

TEST_CASE("19: GPipe's bubble is that of the formula, and messages stand in line", "[step-times][fiber]") {
  // m = 8 microbatches on p = 4 stages, f = 1 ms, b = 2 ms, and messages of h = 5 us. Without messages: (m + p - 1)
  // (f + b). The first microbatch crosses p - 1 borders. A stage asks for the next microbatch only when it is done with
  // the one before, so each of the m - 1 others is late by one more message. The same holds for backward. The barrier
  // takes 10 us.
  CHECK(step_of("GPipe", 4, 1, 8, R"({"kernel": "1ms"})", R"({"kernel": "2ms"})") ==
        (8 + 3) * 3'000 * us + 2 * (3 + 7) * 5 * us + 10 * us);
}

TEST_CASE("20: 1F1B's bubble is as long as GPipe's", "[step-times][fiber]") {
  // p = 2, m = 4. The last stage begins at f + h. Both stages then exchange a result and a gradient in one batch, m - 1
  // times, h each; the last gradient goes back alone. The barrier of two ranks takes 5 us.
  CHECK(step_of("1F1B", 2, 1, 4, R"({"kernel": "1ms"})", R"({"kernel": "2ms"})") ==
        (4 + 1) * 3'000 * us + (1 + 3 + 1) * 5 * us + 5 * us);
}

TEST_CASE("21: interleaving divides the bubble by the stages of a rank", "[step-times][fiber]") {
  // p = 4 ranks with v = 2 stages each, and half of f and b in each. Without messages: m (f + b), and a bubble of
  // (p - 1) (f + b) / v. The first microbatch crosses all 2 p - 1 borders before a gradient comes back across all of
  // them.
  for (const int microbatches : {4, 8, 16}) {
    CHECK(step_of("Interleaved1F1B", 4, 2, microbatches, R"({"kernel": "500us"})", R"({"kernel": "1ms"})") ==
          microbatches * 3'000 * us + 3 * 1'500 * us + 2 * 7 * 5 * us + 10 * us);
  }
}

// Tests use the third step of a model: the first two begin with its construction and with DDP's new buckets.
namespace {

Duration step_of_model(const std::string& model) {
  const std::string step = R"({"forward": "m"}, {"backward": "m"}, {"synchronize": true})";
  const std::string header = R"("objects": {"m": {)" + model + "}},";
  const std::string two = step + ", " + step;
  return time_of(two + ", " + step, header) - time_of(two, header);
}

// Three parameters of 25 MB.
std::string ddp(const std::string& bucket, const std::string& times) {
  return fmt::format(R"("kind": "ddp", "parameters": [{{"bytes": "25MB", "count": 3}}],
                        "first_bucket": "{0}", "bucket_cap": "{0}", {1})",
                     bucket, times);
}

// Three units of 25 MB.
std::string fully_shard(const std::string& times) {
  const std::string unit = R"({"parameters": [{"bytes": "25MB"}], )" + times + "}";
  return R"("kind": "fully_shard", "units": [)" + unit + "," + unit + "," + unit + "]";
}

}  // namespace

TEST_CASE("22: DDP's buckets hide behind the backward that goes on, but for the last",
          "[step-times][fiber]") {
  CHECK(step_of_model(ddp("25MB", R"("forward_time": "9ms", "backward_time": "9ms")")) ==
        9'000 * us + 9'000 * us + reduced);
}

TEST_CASE("23: one bucket of everything hides behind nothing", "[step-times][fiber]") {
  CHECK(step_of_model(ddp("1GB", R"("forward_time": "9ms", "backward_time": "9ms")")) ==
        18'000 * us + 6'005 * us);
}

TEST_CASE("24: buckets that take longer than their gradients stand in line", "[step-times][fiber]") {
  // The first is ready 1 ms into the backward.
  CHECK(step_of_model(ddp("25MB", R"("forward_time": "9ms", "backward_time": "3ms")")) ==
        9'000 * us + 1'000 * us + 3 * reduced);
}

TEST_CASE("25: of FSDP2's calls the first gather and the last reduction are seen", "[step-times][fiber]") {
  // A gather takes 505 us, a reduce_scatter 1,005.
  CHECK(step_of_model(fully_shard(R"("forward_time": "3ms", "backward_time": "6ms")")) ==
        505 * us + 3 * 9'000 * us + 1'005 * us);
}

TEST_CASE("26: where units are short, FSDP2's calls stand in line in the order of their calls",
          "[step-times][fiber]") {
  // Forward: gathers until 505, 1010 and 1515; the last unit computes until 2015. Backward: its gather until 2020, the
  // next one's until 2525. The last unit's gradients are ready at 2520. They are reduced until 3530, and only then the
  // third gather runs, until 4035. The reductions of the other two follow, until 5040 and 6045.
  CHECK(step_of_model(fully_shard(R"("forward_time": "500us", "backward_time": "500us")")) == 6'045 * us);
}

TEST_CASE("27: FSDP's units share the model's time by their sizes", "[step-times][fiber]") {
  CHECK(step_of_model(
            R"("kind": "fsdp", "units": [[{"bytes": "25MB"}], [{"bytes": "25MB"}], [{"bytes": "25MB"}]],
                         "forward_time": "9ms", "backward_time": "18ms")") ==
        505 * us + 27'000 * us + 1'005 * us);
  // The time of the root's parameters before and after its units counts once, not twice.
  CHECK(step_of_model(R"("kind": "fully_shard", "units": [[{"numel": 2}]], "root": {"before": [{"numel": 2}],
                         "after": [{"numel": 2}], "forward_time": "4ms", "backward_time": "8ms"})") <
        12'100 * us);
}

TEST_CASE("28: a model computes what its tokens ask of the GPU, and all wait for whose are longer",
          "[step-times][fiber]") {
  const auto step = [](const std::string& tokens) {
    const std::string header = R"("cluster": "h100-2", "objects": {"m": {"kind": "ddp", "tokens": )" +
                               tokens + R"(, "parameters": [{"bytes": "50MB", "dtype": "bfloat16"}]}},)";
    return time_of(R"({"forward": "m"})", header) - time_of("", header);
  };
  // 25 million elements, with 2 operations for each element and each of 10,000 tokens.
  const Duration kernel =
      time_of(R"({"kernel": {"flops": 5e11, "dtype": "bfloat16"}})", R"("cluster": "h100-2",)");
  CHECK(step("10000") == kernel);
  CHECK(step(R"("rank == 1 ? 20000 : 10000")") >= 2 * kernel - 1);
  CHECK_THROWS_WITH(time_of("", R"("objects": {"m": {"kind": "ddp", "tokens": 1, "forward_time": "1ms",
                                    "parameters": [1]}}, "cluster": "h100-2",)"),
                    Contains("a model has either times or"));
}

TEST_CASE("29: in C++, the kernel of a gradient comes before its bucket", "[step-times][fiber]") {
  const auto time = [](int steps) {
    const Report report = sim::run({.world_size = 2, .backend = "nccl"}, [&](Rank) {
      Module net;
      for (int i = 0; i < 3; ++i) {
        net.parameters.emplace_back();
        net.parameters.back().value = Tensor::zeros({6'250'000}, Dtype::float32, this_rank().device);
      }
      DistributedDataParallel model(net, {.bucket_cap_bytes = 25'000'000, .first_bucket_bytes = 25'000'000});
      for (int i = 0; i < steps; ++i) {
        model.forward([] { launch_kernel(9 * millisecond); });
        std::vector<Gradient> gradients;
        for (const std::uint32_t parameter : {2, 1, 0}) {
          gradients.push_back({parameter,
                               Tensor::zeros({6'250'000}, Dtype::float32, this_rank().device),
                               {.duration = 3 * millisecond}});
        }
        model.backward(std::move(gradients));
        synchronize();
      }
    });
    REQUIRE(verdict_word(report.verdict) == "ok");
    return report.simulated_time;
  };
  CHECK(time(3) - time(2) == 18'000 * us + reduced);
}

}  // namespace rollcall::scenario::step_times_test
