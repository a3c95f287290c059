// Compares FullyShardedDataParallel with real PyTorch 2.14: the files fsdp1_* of tests/data/torch_2_14/fsdp.

#include "sim/train/fsdp.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "sim/c10d/device_mesh.h"
#include "sim/c10d/rank_context.h"
#include "sim/engine/simulate.h"
#include "sim/train/fully_shard.h"
#include "sim/train/optimizer.h"
#include "tests/catch.h"
#include "tests/unit/train/recorded_fsdp.h"

namespace rollcall::fsdp_test {
namespace {

using nlohmann::json;
using test::RankTrace;

FsdpOptions options_of(const json& spec) {
  FsdpOptions options{.strategy = *parse_sharding_strategy(spec.value("strategy", "FULL_SHARD")),
                      .forward_prefetch = spec.value("forward_prefetch", false)};
  if (spec.contains("mesh")) {
    const DeviceMesh mesh = init_device_mesh({spec["mesh"].get<std::vector<Rank>>(), {"replicate", "shard"}});
    options.group = mesh.get_group("shard");
    options.replicate_group = mesh.get_group("replicate");
  }
  if (spec.contains("mp")) {
    options.mixed_precision = {test::dtype_in(spec["mp"], "param_dtype"),
                               test::dtype_in(spec["mp"], "reduce_dtype")};
  }
  if (spec.contains("backward_prefetch")) {
    options.backward_prefetch = spec["backward_prefetch"].is_null()            ? BackwardPrefetch::none
                                : spec["backward_prefetch"] == "BACKWARD_POST" ? BackwardPrefetch::post
                                                                               : BackwardPrefetch::pre;
  }
  return options;
}

// record_fsdp.py's Model in FullyShardedDataParallel, on one rank.
class Model {
 public:
  Model(const json& spec, Rank rank, RankTrace& trace)
      : spec_(spec), rank_(rank), trace_(trace), model_(units_of(spec), options_of(spec)) {
    for (Parameter& shard : model_.shards()) {
      parameters_.push_back(&shard);
    }
    optimizer_ = make_optimizer(parameters_, {.lr = 0.5});
  }

  void run() {
    for (const json& step : spec_["program"]) {
      do_step(test::verb_of(step), step);
    }
  }

 private:
  static std::vector<Module> units_of(const json& spec) {
    std::vector<Module> units(1);
    const json root = spec.value("root", json::object());
    for (const auto& [key, base] : {std::pair("before", 1), std::pair("after", 7)}) {
      for (Parameter& parameter :
           root.contains(key) ? test::unit_parameters(root[key], base) : std::vector<Parameter>()) {
        units.front().parameters.push_back(parameter);
      }
    }
    for (const json& unit : spec["units"]) {
      const double base = 10 * static_cast<double>(units.size());
      units.emplace_back().parameters = test::unit_parameters(unit, base);
    }
    return units;
  }

  // Returns the flat parameters of torch's state dict: the root's first part, the units, the root's last part.
  json state() {
    json all = json::array();
    for (const Tensor& flat : model_.gather_state()) {
      all.push_back(flat.to_vector());
    }
    return all;
  }

  void do_step(const std::string& verb, const json& step) {
    if (verb == "forward") {
      model_.forward();
      factor_ = (rank_ + 1) * ++forwards_;
    } else if (verb == "backward") {
      model_.backward([&](std::size_t unit, const Shape& shape) {
        return Tensor::full(shape, factor_, model_.shards()[unit].value.dtype(), this_rank().device);
      });
    } else if (verb == "step") {
      optimizer_->step();
    } else if (verb == "zero_grad") {
      for (Parameter* const parameter : parameters_) {
        zero_grad(*parameter, true);
      }
    } else if (verb == "enter_no_sync") {
      no_sync_ = std::make_unique<FullyShardedDataParallel::NoSync>(model_);
    } else if (verb == "leave_no_sync") {
      no_sync_.reset();
    } else if (verb == "clip") {
      const double type = step.is_array() ? INFINITY : 2;
      const double norm = model_.clip_grad_norm(1.0, type);
      trace_.values.emplace_back("norm", json::array({norm}).dump());
    } else if (verb == "state_dict") {
      state();
    } else if (verb == "full") {
      trace_.values.emplace_back("full", state().dump());
    } else {
      FAIL("no such step: " << verb);
    }
  }

  const json& spec_;
  Rank rank_;
  RankTrace& trace_;
  FullyShardedDataParallel model_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<FullyShardedDataParallel::NoSync> no_sync_;
  double factor_ = 1;
  int forwards_ = 0;
};

// Combines torch's individual parameters into the flat parameters that they are part of, without padding.
json flattened(const json& parameters, const json& spec) {
  const json root = spec.value("root", json::object());
  const std::size_t before = root.value("before", json::array()).size();
  const std::size_t after = root.value("after", json::array()).size();
  json flat = json::array({json::array()});
  const auto add = [&](const json& parameter) {
    flat.back().insert(flat.back().end(), parameter.begin(), parameter.end());
  };
  for (std::size_t i = 0; i < before; ++i) {
    add(parameters[i]);
  }
  for (std::size_t i = parameters.size() - after; i < parameters.size(); ++i) {
    add(parameters[i]);
  }
  if (flat.back().empty()) {
    flat.clear();
  }
  std::size_t at = before;
  for (const json& unit : spec["units"]) {
    flat.push_back(json::array());
    for (std::size_t i = 0; i < unit.size(); ++i) {
      add(parameters[at++]);
    }
  }
  return flat;
}

// Converts torch's record to our form, with flat values.
json as_ours(json recorded) {
  for (json& rank : recorded["ranks"]) {
    if (!rank.contains("values")) {
      continue;
    }
    for (json& value : rank["values"]) {
      value[1] = value[0] == "full" ? flattened(value[1], recorded["case"]) : value[1];
    }
  }
  return recorded;
}

void cut_padding(std::vector<RankTrace>& traces, const json& recorded) {
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    for (std::size_t i = 0; i < traces[rank].values.size(); ++i) {
      const json& theirs = recorded["ranks"][rank]["values"][i][1];
      auto& [what, text] = traces[rank].values[i];
      json ours = json::parse(text);
      for (std::size_t unit = 0; what == "full" && unit < ours.size(); ++unit) {
        ours[unit].erase(ours[unit].begin() + static_cast<std::ptrdiff_t>(theirs[unit].size()),
                         ours[unit].end());
      }
      text = ours.dump();
    }
  }
}

Report run_on(TorchRelease release, const std::function<void()>& body) {
  return sim::run({.world_size = 2, .backend = "nccl", .torch = release, .timeline = true},
                  [&](Rank) { body(); });
}

// Returns the calls of rank 0, by number.
std::string calls_of(const Report& report) {
  std::map<std::int64_t, std::string> calls;
  for (const Span& span : report.timeline.spans()) {
    if (span.rank == 0 && span.moves_data()) {
      calls[span.seq] = report.timeline.name(span.name) == "reduce_scatter_tensor" ? "RS" : "AG";
    }
  }
  std::string sequence;
  for (const auto& [seq, call] : calls) {
    sequence += call + " ";
  }
  return sequence;
}

}  // namespace

TEST_CASE("FullyShardedDataParallel prefetches since PyTorch 2, and fully_shard exists since then",
          "[fiber][fsdp]") {
  const auto layer = [] {
    return Parameter{.name = "w", .value = Tensor::ones({4}, Dtype::float32, this_rank().device)};
  };
  const auto fsdp = [&] {
    Module unit;
    unit.parameters.push_back(layer());
    FullyShardedDataParallel model({Module(), unit, unit});
    model.forward();
    model.backward([](std::size_t, const Shape& shape) {
      return Tensor::ones(shape, Dtype::float32, this_rank().device);
    });
  };
  const auto fully_shard = [&] {
    FullyShardedModule model(
        {.parameters = {layer()}, .reshard_after_forward = ReshardAfterForward::of(true)});
    model.forward();
    model.backward(
        [](std::size_t, std::size_t) { return Tensor::ones({4}, Dtype::float32, this_rank().device); });
  };
  CHECK(calls_of(run_on(TorchRelease::v1_13, fsdp)) == "AG AG AG RS AG RS ");
  CHECK(calls_of(run_on(TorchRelease::v2_6, fsdp)) == "AG AG AG AG RS RS ");
  CHECK(calls_of(run_on(TorchRelease::v2_14, fsdp)) == "AG AG AG AG RS RS ");
  CHECK(run_on(TorchRelease::v1_13, fully_shard).of(0).exception ==
        "ImportError: cannot import name 'fully_shard' from 'torch.distributed.fsdp'");
  CHECK(calls_of(run_on(TorchRelease::v2_6, fully_shard)) == "AG RS ");
  CHECK(calls_of(run_on(TorchRelease::v2_14, fully_shard)) == "AG AG RS ");
}

TEST_CASE("FullyShardedDataParallel makes the calls and the values of PyTorch 2.14", "[fiber][fsdp]") {
  const auto paths = test::recorded_cases("fsdp1_");
  REQUIRE(paths.size() > 25);
  for (const std::filesystem::path& path : paths) {
    INFO(path.stem().string());
    const json recorded = as_ours(test::read_json(path));
    const json& spec = recorded["case"];
    test::TracedRun run =
        test::run_traced(spec, "gloo", [&](Rank rank, RankTrace& trace) { Model(spec, rank, trace).run(); });
    cut_padding(run.traces, recorded);
    test::check_like_recorded(recorded, run);
  }
}

}  // namespace rollcall::fsdp_test
