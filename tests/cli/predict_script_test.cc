// `rollcall predict train.py` and `record --kernels`: the work of GPUs, counted in plain PyTorch scripts.

#include <cmath>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/scripts.h"

namespace rollcall::test::predict_script_test {
namespace {
using nlohmann::json;

json predicted(const Shell& shell, const std::string& step, const std::string& options = "-n 1") {
  const Outcome outcome = shell.rollcall("predict " + script("steps") + " --cluster h100-8 --format json " +
                                         options + " -- " + step);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("a step of a script has the operations that its layers have by hand", "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  const bool has_fused = recorded_torch() != "1.13";  // its backward computes the scores again
  const Shell shell;
  const double linear = 2.0 * 64 * 512 * 512;
  const json mlp = predicted(shell, "mlp");
  CHECK(mlp["flops"] == (4 + 4 + 3) * linear);  // forward; weights; inputs, except for the first layer's
  CHECK(mlp["steps"] == 1);
  CHECK(mlp["steps_left_out"] == 2);
  CHECK(mlp["step_us"] > mlp["compute_us"].get<double>() * 0.999);
  const double convolution = 2.0 * 4 * 16 * 16 * 8 * (3 * 3 * 3);
  CHECK(predicted(shell, "convolution")["flops"] == 2 * convolution);
  const double qkv = 2.0 * 2 * 16 * 64 * 192;
  const double out = 2.0 * 2 * 16 * 64 * 64;
  const double scores = 2.0 * 2 * (2 * 4) * 16 * 16 * 16;  // with the keys and with the values
  CHECK(predicted(shell, "attention")["flops"] == 2 * qkv + 3 * out + (has_fused ? 3.5 : 3) * scores);
}

TEST_CASE("a script is asked what if, and the table, JSON and the page have the answers",
          "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome text =
      shell.rollcall("predict " + script("steps") + " --cluster h100-8 -n 2 --tokens-per-step 128 " +
                     "--what-if slow=1:50% --what-if cluster=a100-8 --report html=step.html -- mlp");
  INFO(text.err);
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Contains("tokens/s") && Contains("slow=1:50%") && Contains("cluster=a100-8"));
  CHECK_THAT(contents(shell.path("step.html")), Contains("What if") && Contains("slow=1:50%"));
  const json told = predicted(shell, "mlp", "-n 2 --what-if slow=1:50% --what-if cluster=a100-8");
  CHECK(told["what_if"][0]["slowest"] == "1");
  CHECK(told["what_if"][0]["step_us"] > told["step_us"]);
  CHECK(told["what_if"][1]["compute_us"] > told["compute_us"]);
}

TEST_CASE("under autocast products are predicted in lower precision, forward and backward",
          "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = shell.rollcall("record --kernels --cluster h100-8 -n 1 -o out.json " +
                                         script("steps") + " attention sgd autocast");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  const std::string scenario = contents(shell.path("out.json"));
  CHECK_THAT(scenario, Contains(R"("dtype": "bfloat16", "kind": "matmul", "name": "forward")") &&
                           Contains(R"("dtype": "bfloat16", "kind": "matmul", "name": "backward")"));
  CHECK_THAT(scenario, !Contains(R"("dtype": "float32", "kind": "matmul")") &&
                           !Contains(R"("dtype": "float32", "kind": "attention")"));
  CHECK(shell.rollcall("run out.json").code == 0);
}

TEST_CASE("operations that a trace of the user's has take the time that was measured", "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  // Events as torch.profiler writes them: an operation, its launch, and its kernel; twice, with 80 and 120
  // microseconds.
  const auto measured = [](int ts, int number, int microseconds) {
    const json operation = {
        {"ph", "X"},
        {"cat", "cpu_op"},
        {"name", "aten::addmm"},
        {"tid", 1},
        {"ts", ts},
        {"dur", 30},
        {"args", {{"Input Dims", {{512}, {64, 512}, {512, 512}, json::array(), json::array()}}}}};
    const json launch = {{"ph", "X"},
                         {"cat", "cuda_runtime"},
                         {"name", "cudaLaunchKernel"},
                         {"tid", 1},
                         {"ts", ts + 5},
                         {"dur", 3},
                         {"args", {{"correlation", number}}}};
    const json kernel = {{"ph", "X"},
                         {"cat", "kernel"},
                         {"name", "gemm"},
                         {"tid", 7},
                         {"ts", ts + 20},
                         {"dur", microseconds},
                         {"args", {{"correlation", number}}}};
    return json{operation, launch, kernel};
  };
  json events = measured(100, 1, 80);
  for (const json& event : measured(200, 2, 120)) {
    events.push_back(event);
  }
  const Shell shell;
  shell.write("trace.json", json{{"traceEvents", events}}.dump());
  const json mlp = predicted(shell, "mlp", "-n 1 --kernels-from trace.json");
  CHECK(mlp["measured_flops"] == 4 * 2.0 * 64 * 512 * 512);  // the forward of four layers
  CHECK(mlp["flops"] == 11 * 2.0 * 64 * 512 * 512);
  CHECK(mlp["compute_us"] > 400);
  CHECK(mlp["compute_us"] < 500);
}

TEST_CASE("what DDP does once, in the second step, is not counted in a step", "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const json with_it = predicted(shell, "mlp sgd ddp 2", "-n 2");
  const json three = predicted(shell, "mlp sgd ddp 3", "-n 2");
  const json five = predicted(shell, "mlp sgd ddp 5", "-n 2");
  CHECK(with_it["steps_left_out"] == 1);
  CHECK(with_it["step_us"] > three["step_us"]);
  CHECK(five["steps"] == 3);
  CHECK(five["step_us"] == three["step_us"]);
  CHECK(five["flops"] == three["flops"]);
}

TEST_CASE("a rank with more inputs is the slowest, and the prediction names it", "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const json slow = predicted(shell, "mlp sgd slow", "-n 2");
  CHECK(slow["slowest"] == "1");
  CHECK(slow["memory"]["rank"] == 1);
}

TEST_CASE("with the trace of an H200, a script computes as long as it did there", "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  const bool counts_as_there = recorded_torch() == "2.14";
  const std::string source = ROLLCALL_SOURCE_DIR;
  const std::string data = source + "/tests/data/steps_on_gpu/mlp_tiny";
  const Shell shell;
  const std::string command = fmt::format(
      "predict {}/tests/real_jobs/gpu_steps.py --cluster h200-8 -n 1 --kernels-from "
      "{}.trace.json.gz {{}} -- mlp_tiny",
      source, data);
  const Outcome outcome = shell.rollcall(fmt::format(fmt::runtime(command), "--format json"));
  INFO(outcome.err);
  const json step = json::parse(outcome.out);
  const json measured = json::parse(contents(data + ".json"));
  const double kernels_us = measured.at("kernels_ms").get<double>() * 1000;
  CHECK(std::abs(step.at("compute_us").get<double>() - kernels_us) < 0.1 * kernels_us);
  const double step_us = measured.at("step_ms").get<double>() * 1000;
  const double host_us = step.at("host_us").get<double>();  // its host was the limit
  CHECK(host_us > step.at("step_us").get<double>());
  CHECK((!counts_as_there || std::abs(host_us - step_us) < 0.1 * step_us));
  CHECK_THAT(shell.rollcall(fmt::format(fmt::runtime(command), "")).out,
             Contains("to launch them one by one"));
}

TEST_CASE("kernels are recorded where somebody asks for them", "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  CHECK(shell.rollcall("record -n 1 -o out.json " + script("steps") + " mlp").code == 0);
  CHECK_THAT(contents(shell.path("out.json")), !Contains("kernel") && !Contains("cluster"));
  CHECK(shell.rollcall("record --kernels -n 1 " + script("steps") + " mlp").code == 4);
  CHECK_THAT(shell.rollcall("predict " + script("steps")).err, Contains("needs --cluster"));
  const Outcome outcome = shell.rollcall("predict " + script("counter") + " --cluster h100-8 -n 2");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("nccl only") && Contains("gloo"));
}

TEST_CASE("the memory of a step is that of torch's own MemTracker", "[record][predict]") {
  if (!has_torch()) {
    return;
  }
  if (recorded_torch() != "2.14") {
    WARN("not the torch that MemTracker's numbers are of: only its records are compared");
    return;
  }
  const json costs = json::parse(contents(ROLLCALL_SOURCE_DIR "/tests/data/torch_2_14/step_costs.json"));
  const Shell shell;
  for (const auto& [step, peak] : costs["peaks"].items()) {
    INFO(step);
    const json memory = predicted(shell, step, step.ends_with("fsdp") ? "-n 8 --sample 2" : "-n 1")["memory"];
    CHECK(memory["peak"].get<double>() == Approx(peak.get<double>()).epsilon(0.1));
  }
}

}  // namespace rollcall::test::predict_script_test
