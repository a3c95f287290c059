// Compares FSDP2 with real PyTorch 2.14: every file of tests/data/torch_2_14/fsdp has a model, the steps of a program,
// and each rank's calls and values there (record_fsdp.py). This runs the same steps.

#include "sim/train/fully_shard.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/train/optimizer.h"
#include "tests/catch.h"
#include "tests/unit/train/recorded_fsdp.h"

namespace rollcall::fully_shard_test {
namespace {

using nlohmann::json;
using test::RankTrace;

json values_of(const Tensor& tensor) { return tensor.to_vector(); }

// record_fsdp.py's Model on one rank.
class Model {
 public:
  Model(const json& spec, Rank rank, RankTrace& trace) : spec_(spec), rank_(rank), trace_(trace) {
    FullyShardOptions options{.name = "model"};
    if (spec.contains("mesh")) {
      const auto sizes = spec["mesh"].get<std::vector<Rank>>();
      const DeviceMesh mesh = init_device_mesh({sizes, {"replicate", "shard"}});
      options.replicate_group = mesh.get_group("replicate");
      options.shard_group = mesh.get_group("shard");
    }
    const json policy = spec.value("mp", json::object());
    options.mp_policy = {test::dtype_in(policy, "param_dtype"), test::dtype_in(policy, "reduce_dtype")};
    options.reshard_after_forward = reshard_in(spec).value_or(ReshardAfterForward{});
    build(options);
    prepare();
  }

  void run() {
    const json& program = spec_["program"];
    for (const json& step :
         spec_.value("per_rank", false) ? program[static_cast<std::size_t>(rank_)] : program) {
      do_step(test::verb_of(step), step.is_string() ? json::array() : step);
    }
  }

 private:
  static std::optional<ReshardAfterForward> reshard_in(const json& spec) {
    if (!spec.is_object() || !spec.contains("reshard") || spec["reshard"].is_null()) {
      return std::nullopt;
    }
    return spec["reshard"].is_boolean() ? ReshardAfterForward::of(spec["reshard"].get<bool>())
                                        : ReshardAfterForward::to(spec["reshard"].get<Rank>());
  }

  static FsdpUnit unit_of(const json& spec, double base) {
    FsdpUnit unit{.parameters = test::unit_parameters(spec, base), .reshard_after_forward = reshard_in(spec)};
    for (const json& inner : spec.is_object() ? spec.value("inner", json::array()) : json::array()) {
      unit.units.push_back(unit_of(inner, base + 100));
    }
    return unit;
  }

  void build(const FullyShardOptions& options) {
    const json root_spec = spec_.value("root", json::object());
    FsdpUnit root{.reshard_after_forward = reshard_in(root_spec)};
    if (root_spec.contains("before")) {
      root.parameters = test::unit_parameters(root_spec["before"], 1);
      root.before = root.parameters.size();
    }
    if (root_spec.contains("after")) {
      for (Parameter& parameter : test::unit_parameters(root_spec["after"], 7)) {
        root.parameters.push_back(parameter);
      }
    }
    double base = 10;
    for (const json& unit : spec_["units"]) {
      root.units.push_back(unit_of(unit, base));
      root.units.back().name = std::to_string(root.units.size() - 1);
      base += 10;
    }
    if (spec_.value("wrap_root", true)) {
      models_.push_back(std::make_unique<FullyShardedModule>(root, options));
      return;
    }
    for (const FsdpUnit& unit : root.units) {  // each unit is a root
      models_.push_back(std::make_unique<FullyShardedModule>(unit, options));
    }
  }

  // Returns the number of the case's unit, not counting the root or nested units.
  std::size_t index_of(const json& unit) const {
    std::size_t index = 1;
    for (std::int64_t i = 0; i < unit.get<std::int64_t>(); ++i) {
      const json& spec = spec_["units"][static_cast<std::size_t>(i)];
      index += 1 + (spec.is_object() ? spec.value("inner", json::array()).size() : 0);
    }
    return unit.get<std::int64_t>() < 0 ? 0 : index;
  }

  std::vector<std::size_t> indices_of(const json& units) const {
    std::vector<std::size_t> indices;
    for (const json& unit : units) {
      indices.push_back(index_of(unit));
    }
    return indices;
  }

  void prepare() {
    FullyShardedModule& model = *models_.front();
    const json ahead = spec_.value("forward_prefetch", json::object());  // items() does not keep a copy
    for (const auto& [at, targets] : ahead.items()) {
      model.set_modules_to_forward_prefetch(index_of(std::stoi(at)), indices_of(targets));
    }
    const json back = spec_.value("backward_prefetch", json::object());
    for (const auto& [at, targets] : back.items()) {
      model.set_modules_to_backward_prefetch(index_of(std::stoi(at)), indices_of(targets));
    }
    for (const json& unit : spec_.value("keep_sharded_in_backward", json::array())) {
      model.set_unshard_in_backward(index_of(unit), false);
    }
    for (std::size_t unit = 1; unit < model.unit_count(); ++unit) {
      if (spec_.contains("divide_factor")) {
        model.set_gradient_divide_factor(unit, spec_["divide_factor"].get<double>());
      }
      if (spec_.value("force_sum", false)) {
        model.set_force_sum_reduction_for_comms(unit, true);
      }
    }
    if (spec_.value("reduce_scatter_unused_params", false)) {
      model.set_reduce_scatter_unused_params(true);
    }
    for (const auto& part : models_) {
      for (Parameter* const parameter : part->parameters()) {
        parameters_.push_back(parameter);
      }
    }
    std::vector<Parameter*> trainable;
    std::ranges::copy_if(parameters_, std::back_inserter(trainable), &Parameter::requires_grad);
    optimizer_ = make_optimizer(trainable, {.lr = 0.5});
  }

  void forward(const json& options) {
    FsdpForwardOptions pass{.grad_enabled = options.value("grad", true),
                            .input_requires_grad = options.value("input_grad", false)};
    pass.skipped = indices_of(options.value("skip", json::array()));
    for (const json& unused : options.value("unused", json::array())) {
      pass.unused.emplace_back(1, unused.get<std::size_t>());
    }
    factor_ = (rank_ + 1) * ++forwards_;
    for (const auto& model : models_) {
      model->forward({}, pass);
      pass.input_requires_grad = pass.grad_enabled;
    }
  }

  void backward() {
    for (std::size_t i = models_.size(); i-- > 0;) {
      FullyShardedModule& model = *models_[i];
      model.backward([&](std::size_t unit, std::size_t parameter) {
        const FsdpParam& param = model.params(unit)[parameter];
        return Tensor::full(param.shape(), factor_, param.compute_dtype(), this_rank().device);
      });
    }
  }

  void note(const char* what, const json& values) { trace_.values.emplace_back(what, values.dump()); }

  void do_step(const std::string& verb, const json& step) {
    FullyShardedModule& model = *models_.front();
    const std::size_t unit = step.size() > 2 ? index_of(step[2]) : 0;
    if (verb == "forward") {
      forward(step.size() > 1 ? step[1] : json::object());
    } else if (verb == "backward") {
      backward();
    } else if (verb == "step") {
      optimizer_->step();
    } else if (verb == "zero_grad") {
      for (Parameter* const parameter : parameters_) {
        zero_grad(*parameter, true);
      }
    } else if (verb == "clip") {
      const bool is_infinity = step.size() > 1 && step[1].is_string();
      const double norm = model.clip_grad_norm(1.0, is_infinity       ? INFINITY
                                                    : step.size() > 1 ? step[1].get<double>()
                                                                      : 2);
      if (!is_infinity) {
        note("norm", json::array({norm}));
      }
    } else if (verb == "full" || verb == "state_dict") {
      json whole = json::array();
      for (const Tensor& tensor : model.full_tensors()) {
        whole.push_back(values_of(tensor));
      }
      if (verb == "full") {
        note("full", whole);
      }
    } else if (verb == "grads" || verb == "shards") {
      json list = json::array();
      for (const Parameter* const parameter : parameters_) {
        const Tensor& tensor = verb == "grads" ? parameter->grad : parameter->value;
        list.push_back(tensor ? values_of(tensor) : json());
      }
      note(verb.c_str(), list);
    } else if (verb == "unshard") {
      model.unshard(index_of(step[1]));
    } else if (verb == "reshard") {
      model.reshard(index_of(step[1]));
    } else if (verb == "set_requires_gradient_sync") {
      model.set_requires_gradient_sync(step[1].get<bool>(), unit);
    } else if (verb == "set_requires_all_reduce") {
      model.set_requires_all_reduce(step[1].get<bool>(), unit);
    } else if (verb == "set_reshard_after_forward") {
      model.set_reshard_after_forward(step[1].get<bool>(), unit);
    } else if (verb == "set_reshard_after_backward") {
      model.set_reshard_after_backward(step[1].get<bool>(), unit);
    } else if (verb == "set_is_last_backward") {
      model.set_is_last_backward(step[1].get<bool>());
    } else {
      FAIL("no such step: " << verb);
    }
  }

  const json& spec_;
  Rank rank_;
  RankTrace& trace_;
  std::vector<std::unique_ptr<FullyShardedModule>> models_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  double factor_ = 1;
  int forwards_ = 0;
};

}  // namespace

TEST_CASE("fully_shard makes the calls and the values of PyTorch 2.14", "[fiber][fsdp]") {
  const auto paths = test::recorded_cases("");
  REQUIRE(paths.size() > 100);
  for (const std::filesystem::path& path : paths) {
    INFO(path.stem().string());
    const json recorded = test::read_json(path);
    const json& spec = recorded["case"];
    if (spec.contains("api")) {
      continue;
    }
    const bool is_gloo = spec.value("backend", "gloo") == "gloo";
    test::check_like_recorded(
        recorded, test::run_traced(spec, is_gloo ? "gloo" : "nccl",
                                   [&](Rank rank, RankTrace& trace) { Model(spec, rank, trace).run(); }));
  }
}

}  // namespace rollcall::fully_shard_test
