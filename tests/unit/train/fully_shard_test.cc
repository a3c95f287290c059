// FSDP2 against real PyTorch 2.14: every file of tests/data/torch_2_14/fsdp has a model, what is done with it, and each
// rank's calls and values there (record_fsdp.py). The same is done here.

#include "sim/train/fully_shard.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/forwarding_backend.h"
#include "sim/c10d/rank_context.h"
#include "sim/engine/simulate.h"
#include "sim/report/report.h"
#include "sim/train/optimizer.h"
#include "tests/catch.h"

namespace rollcall {
namespace {

using nlohmann::json;
using Calls = std::vector<std::string>;

// One rank: its calls as the files have them, and its values.
struct Trace {
  Calls calls;
  std::vector<std::pair<std::string, json>> values;
};

class CallRecorder final : public ForwardingBackend {
 public:
  CallRecorder(Backend& inner, std::vector<Trace>& traces) : ForwardingBackend(inner), traces_(traces) {}

  Work issue(const Op& op) override {
    const RankContext& self = this_rank();
    const ProcessGroup group = op.group == world_group ? self.world : made_.at(op.group);
    std::string ranks;
    for (const Rank rank : group.members().ranks) {
      ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
    }
    std::string text = row_of(op.kind).name.data();
    const std::int64_t out = op.tensors.output != nullptr ? op.tensors.output->numel : op.numel;
    text += " " + ranks + " " + std::to_string(op.numel) + ">" + std::to_string(out) + " " +
            std::string(to_string(op.dtype));
    if (has_reduce_op(op.kind)) {
      text += " " + std::string(to_string(op.reduce));
    }
    traces_[static_cast<std::size_t>(self.rank)].calls.push_back(text);
    return ForwardingBackend::issue(op);
  }

  ProcessGroup manage(GroupCall call) override {
    const ProcessGroup group = ForwardingBackend::manage(std::move(call));
    if (group.is_member()) {
      made_[group.id()] = group;
    }
    return group;
  }

 private:
  std::vector<Trace>& traces_;
  std::map<GroupId, ProcessGroup> made_;
};

Shape shape_of(const json& sizes) {
  const auto list = sizes.get<std::vector<std::int64_t>>();
  return Shape(std::span<const std::int64_t>(list));
}

json values_of(const Tensor& tensor) { return tensor.to_vector(); }

// record_fsdp.py's Model on one rank.
class Model {
 public:
  Model(const json& spec, Rank rank, Trace& trace) : spec_(spec), rank_(rank), trace_(trace) {
    FullyShardOptions options{.name = "model"};
    if (spec.contains("mesh")) {
      const auto sizes = spec["mesh"].get<std::vector<Rank>>();
      const DeviceMesh mesh = init_device_mesh({sizes, {"replicate", "shard"}});
      options.replicate_group = mesh.get_group("replicate");
      options.shard_group = mesh.get_group("shard");
    }
    const json policy = spec.value("mp", json::object());
    options.mp_policy = {dtype_in(policy, "param_dtype"), dtype_in(policy, "reduce_dtype")};
    options.reshard_after_forward = reshard_in(spec).value_or(ReshardAfterForward{});
    build(options);
    prepare();
  }

  void run() {
    const json& program = spec_["program"];
    for (const json& step :
         spec_.value("per_rank", false) ? program[static_cast<std::size_t>(rank_)] : program) {
      do_step(step.is_string() ? step.get<std::string>() : step[0].get<std::string>(),
              step.is_string() ? json::array() : step);
    }
  }

 private:
  static std::optional<Dtype> dtype_in(const json& object, const char* key) {
    return object.contains(key) ? parse_dtype(object[key].get<std::string>()) : std::nullopt;
  }

  static std::optional<ReshardAfterForward> reshard_in(const json& spec) {
    if (!spec.is_object() || !spec.contains("reshard") || spec["reshard"].is_null()) {
      return std::nullopt;
    }
    return spec["reshard"].is_boolean() ? ReshardAfterForward::of(spec["reshard"].get<bool>())
                                        : ReshardAfterForward::to(spec["reshard"].get<Rank>());
  }

  static std::vector<Parameter> parameters_of(const json& spec, double base) {
    std::vector<Parameter> parameters;
    const json& shapes = spec.is_array() ? spec : spec["params"];
    const json frozen = spec.is_array() ? json::array() : spec.value("frozen", json::array());
    const json dtypes = spec.is_array() ? json::array() : spec.value("dtypes", json::array());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Shape shape = shape_of(shapes[i]);
      std::vector<double> values;
      for (std::int64_t at = 0; at < shape.numel(); ++at) {
        values.push_back(base + static_cast<double>(at));
      }
      const Dtype dtype = i < dtypes.size() ? *parse_dtype(dtypes[i].get<std::string>()) : Dtype::float32;
      const Tensor whole = Tensor::zeros(shape, dtype, this_rank().device);
      whole.copy_(Tensor::of(values, dtype, this_rank().device));
      const bool is_frozen =
          frozen.is_boolean() ? frozen.get<bool>() : std::ranges::find(frozen, json(i)) != frozen.end();
      parameters.push_back({.name = "p" + std::to_string(i), .value = whole, .requires_grad = !is_frozen});
    }
    return parameters;
  }

  static FsdpUnit unit_of(const json& spec, double base) {
    FsdpUnit unit{.parameters = parameters_of(spec, base), .reshard_after_forward = reshard_in(spec)};
    for (const json& inner : spec.is_object() ? spec.value("inner", json::array()) : json::array()) {
      unit.units.push_back(unit_of(inner, base + 100));
    }
    return unit;
  }

  void build(const FullyShardOptions& options) {
    const json root_spec = spec_.value("root", json::object());
    FsdpUnit root{.reshard_after_forward = reshard_in(root_spec)};
    if (root_spec.contains("before")) {
      root.parameters = parameters_of(root_spec["before"], 1);
      root.before = root.parameters.size();
    }
    if (root_spec.contains("after")) {
      for (Parameter& parameter : parameters_of(root_spec["after"], 7)) {
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
    for (const FsdpUnit& unit : root.units) {  // each is a root
      models_.push_back(std::make_unique<FullyShardedModule>(unit, options));
    }
  }

  // The number of the case's unit, which does not count the root or units in units.
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
    const json ahead = spec_.value("forward_prefetch", json::object());  // items() keeps no copy
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

  void note(const char* what, json values) { trace_.values.emplace_back(what, std::move(values)); }

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
        note("full", std::move(whole));
      }
    } else if (verb == "grads" || verb == "shards") {
      json list = json::array();
      for (const Parameter* const parameter : parameters_) {
        const Tensor& tensor = verb == "grads" ? parameter->grad : parameter->value;
        list.push_back(tensor ? values_of(tensor) : json());
      }
      note(verb.c_str(), std::move(list));
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
  Trace& trace_;
  std::vector<std::unique_ptr<FullyShardedModule>> models_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  double factor_ = 1;
  int forwards_ = 0;
};

struct Run {
  std::vector<Trace> traces;
  Report report;
};

Run run_case(const json& spec, const std::string& backend) {
  Run run;
  const auto ranks = spec["world"].get<Rank>();
  run.traces.resize(static_cast<std::size_t>(ranks));
  sim::Options options{.world_size = ranks, .backend = backend};
  options.decorate = [&](Backend& inner) { return std::make_unique<CallRecorder>(inner, run.traces); };
  run.report = sim::run(
      options, [&](Rank rank) { Model(spec, rank, run.traces[static_cast<std::size_t>(rank)]).run(); });
  return run;
}

// Numbers of float32, which torch adds up in another order.
bool is_close(const json& ours, const json& theirs) {
  if (ours.is_array() && theirs.is_array()) {
    return std::ranges::equal(ours, theirs, is_close);
  }
  if (!ours.is_number() || !theirs.is_number()) {
    return ours == theirs;
  }
  const double a = ours.get<double>();
  const double b = theirs.get<double>();
  return std::abs(a - b) <= 2e-6 * std::max({1.0, std::abs(a), std::abs(b)});
}

void check_rank(const json& theirs, const Trace& ours) {
  CHECK(ours.calls == theirs["calls"].get<Calls>());
  if (!theirs.contains("values")) {  // a backend without values, or a case without any
    return;
  }
  const json& values = theirs["values"];
  REQUIRE(ours.values.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(ours.values[i].first == values[i][0]);
    INFO(json(ours.values[i].second).dump() << "\n" << values[i].dump());
    CHECK(is_close(ours.values[i].second, values[i][1]));
  }
}

std::vector<std::filesystem::path> recorded_cases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(ROLLCALL_SOURCE_DIR) /
                                                               "tests/data/torch_2_14/fsdp")) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

TEST_CASE("fully_shard makes the calls and the values of PyTorch 2.14", "[fiber][fsdp]") {
  const auto paths = recorded_cases();
  REQUIRE(paths.size() > 70);
  for (const std::filesystem::path& path : paths) {
    INFO(path.stem().string());
    const json recorded = json::parse(std::ifstream(path));
    const json& spec = recorded["case"];
    if (spec.value("per_rank", false)) {
      continue;
    }
    const Run run = run_case(spec, "nccl");
    const auto ranks = spec.value("ranks", json::array());
    for (std::size_t i = 0; i < recorded["ranks"].size(); ++i) {
      const json& theirs = recorded["ranks"][i];
      const std::size_t rank = ranks.empty() ? i : ranks[i].get<std::size_t>();
      INFO("rank " << rank);
      check_rank(theirs, run.traces[rank]);
      const RankClass& state = run.report.of(static_cast<Rank>(rank));
      if (theirs["end"][0] == "completed") {
        CHECK(state.state == RankClass::State::finished);
      } else {
        CHECK(state.state == RankClass::State::raised);
        CHECK(state.exception ==
              theirs["end"][1].get<std::string>() + ": " + theirs["end"][2].get<std::string>());
      }
    }
  }
}

}  // namespace rollcall
