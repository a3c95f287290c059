// Compares DistributedDataParallel with real PyTorch 2.14: the arguments that 1.13 and 2.6 do not have.

#include <algorithm>
#include <regex>

#include <nlohmann/json.hpp>

#include "sim/dist.h"
#include "tests/catch.h"
#include "tests/conformance/call_lines.h"

namespace rollcall::golden::ddp_records_test {
namespace {

using Used = std::vector<std::vector<int>>;  // by step and layer

Module chain(const std::vector<std::int64_t>& widths) {
  Module module;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    module.parameters.push_back(
        {.name = "layers." + std::to_string(i), .value = Tensor::ones({widths[i + 1], widths[i]})});
  }
  return module;
}

std::int64_t bytes_of(double mebibytes) { return static_cast<std::int64_t>(mebibytes * 1024 * 1024); }

DdpOptions options_of(const nlohmann::json& params) {
  DdpOptions options;
  options.find_unused_parameters = params.value("find_unused_parameters", false);
  options.skip_all_reduce_unused_params = params.value("skip_all_reduce_unused_params", false);
  options.static_graph = params.value("static_graph", false);
  options.gradient_as_bucket_view = params.value("gradient_as_bucket_view", false);
  if (params.contains("bucket_cap_mb")) {
    options.bucket_cap_bytes = bytes_of(params["bucket_cap_mb"]);
  }
  for (const double cap : params.value("bucket_cap_mb_list", std::vector<double>())) {
    options.bucket_cap_list.push_back(bytes_of(cap));
  }
  return options;
}

void run_step(DistributedDataParallel& model, const Module& module, const std::vector<int>& used) {
  ForwardOutputs outputs;
  std::vector<Gradient> gradients;  // the last layer's come first
  for (auto layer = static_cast<std::uint32_t>(used.size()); layer-- > 0;) {
    if (used[layer] == 0) {
      outputs.unused.push_back(layer);
    } else {
      gradients.push_back({layer, Tensor::ones(module.parameters[layer].value.shape())});
    }
  }
  model.forward([&] { return outputs; });
  model.backward(std::move(gradients));
}

std::string have_gradients(const Module& module) {
  std::string text;
  for (const Parameter& parameter : module.parameters) {
    text += std::string(text.empty() ? "" : ", ") + (parameter.grad ? "1" : "0");
  }
  return "has gradients [" + text + "]";
}

// Does what the Python program of the same name in tests/data/torch_2_14/record.py does.
void run_ddp(CallLines& lines, const nlohmann::json& params, Rank rank) {
  Module module = chain(params.at("widths"));
  DistributedDataParallel model(module, options_of(params));
  const std::vector<Used> all = params.at("used");
  const Used& steps = all.size() > 1 ? all[static_cast<std::size_t>(rank)] : all.front();
  const auto run_steps = [&] {
    for (std::size_t step = 0; step < steps.size(); ++step) {
      lines.mark("step " + std::to_string(step));
      run_step(model, module, steps[step]);
      lines.mark(have_gradients(module));
      zero_grad(module, true);
    }
  };
  Join({model}, {.enable = params.value("join", false)}).run(run_steps);
}

std::string comparable(const Lines& lines) {
  return std::regex_replace(to_text(lines), std::regex("\"allgather\""), "\"all_gather\"");
}

// Runs the case on the simulator, and checks that every rank makes the same calls as in reality.
void check_calls(const std::string& name, bool hangs) {
  const RecordedCalls calls = read_recorded_calls("ddp", name);
  CallLines lines(calls.world_size);
  const Report report = lines.run([&](Rank rank) { run_ddp(lines, *calls.params, rank); });
  CHECK((verdict_word(report.verdict) == "ok") == !hangs);
  for (std::size_t rank = 0; rank < calls.ranks.size(); ++rank) {
    INFO("rank " << rank);
    CHECK(to_text(lines.ranks()[rank]) == comparable(calls.ranks[rank]));
  }
}

}  // namespace

TEST_CASE("DDP's newest arguments make the calls of real PyTorch 2.14", "[fiber][ddp]") {
  for (const std::string& name : recorded_call_cases("ddp")) {
    DYNAMIC_SECTION(name) { check_calls(name, name == "skip_unequal" || name == "skip_join"); }
  }
}

}  // namespace rollcall::golden::ddp_records_test
