// Lowering, the part about training: models, optimizers, and the statements that use them.

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/lowering.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::scenario {
namespace {

// Arguments that DistributedDataParallel gained late: TorchTraits::ddp_takes_new_arguments.
constexpr std::array<const char*, 3> new_model_keys{"bucket_cap_mb_list", "forward_sync_buffers",
                                                    "skip_all_reduce_unused_params"};

constexpr const char* without_parameters = "a model needs \"parameters\", such as [1000, \"25MiB\"]";

}  // namespace

void Lowering::check_model_release(const Json& object) {
  const TorchTraits& torch = traits_of(facts_.torch);
  for (const char* key : new_model_keys) {
    const auto value = object.find(key);
    if (value && !torch.ddp_takes_new_arguments) {
      read_.error(*value,
                  fmt::format("DistributedDataParallel of PyTorch {} has no argument \"{}\"; {} has it",
                              torch.name, key, traits_of(newest_torch).name));
    }
  }
}

// Reads times, or the number of tokens that times on the GPU are computed from.
void Lowering::read_model_work(const Json& object, ModelWork& work) {
  read_.given(object.find("forward_time"), work.forward_time, &ValueReader::duration);
  read_.given(object.find("backward_time"), work.backward_time, &ValueReader::duration);
  if (const auto tokens = object.find("tokens")) {
    require_gpu(*tokens);
    if (work.has_times()) {
      read_.error(*tokens, "a model has either times or \"tokens\" that times follow from");
    }
    work.tokens = read_.amount(*tokens);
  }
}

ObjectKind Lowering::lower_model(const Json& object) {
  check_model_release(object);
  ModelObject model;
  DdpOptions& options = model.options;
  options.name = object.key();
  model.parameters = read_parameters(object.find("parameters"), "parameter");
  model.buffers = read_parameters(object.find("buffers"), "buffer");
  object.read("broadcast_buffers", options.broadcast_buffers);
  object.read("forward_sync_buffers", options.forward_sync_buffers);
  object.read("find_unused_parameters", options.find_unused_parameters);
  object.read("skip_all_reduce_unused_params", options.skip_all_reduce_unused_params);
  object.read("gradient_as_bucket_view", options.gradient_as_bucket_view);
  object.read("static_graph", options.static_graph);
  read_.given(object.find("bucket_cap"), options.bucket_cap_bytes, &ValueReader::bytes);
  read_.given(object.find("first_bucket"), options.first_bucket_bytes, &ValueReader::bytes);
  if (const auto caps = object.find("bucket_cap_mb_list")) {
    for (Json cap : caps->children()) {  // distributed.py, _BucketCapacityConfig
      constexpr double mebi = 1024 * 1024;
      options.bucket_cap_list.push_back(
          std::max<std::int64_t>(static_cast<std::int64_t>(cap.real() * mebi), 1));
    }
  }
  if (const auto hook = object.find("comm_hook")) {
    model.comm_hook = hook->text() == "allreduce"       ? allreduce_hook
                      : hook->text() == "fp16_compress" ? fp16_compress_hook
                                                        : bf16_compress_hook;
  }
  read_model_work(object, model.work);
  if (model.parameters.empty()) {
    read_.error(object, without_parameters);
  }
  return model;
}

ObjectKind Lowering::lower_sharded(const Json& object) {
  ShardedObject model;
  model.options.name = object.key();
  if (const auto units = object.find("units")) {
    for (Json unit : units->children()) {
      if (unit.is(JsonType::object)) {
        read_.error(unit, "a unit of an object of kind \"fsdp\" is a list of parameters");
        continue;
      }
      model.units.push_back(read_parameters(unit, "parameter"));
    }
  } else {
    read_.error(object, "a sharded model needs \"units\", such as [[1000], [\"25MiB\"]]");
  }
  if (const auto strategy = object.find("strategy")) {
    model.options.strategy = parse_sharding_strategy(strategy->text()).value_or(model.options.strategy);
  }
  read_.given(object.find("replicate_group"), model.replicate_group, &ValueReader::group);
  check_strategy(object, model);
  model.options.mixed_precision = read_policy(object.find("mixed_precision"));
  read_model_work(object, model.work);
  return model;
}

void Lowering::check_strategy(const Json& object, const ShardedObject& model) {
  const bool wants_replicas = model.options.strategy == ShardingStrategy::hybrid_shard ||
                              model.options.strategy == ShardingStrategy::hybrid_shard_zero2;
  if (!wants_replicas) {
    if (model.replicate_group) {
      read_.error(*object.find("replicate_group"), "only \"strategy\": \"HYBRID_SHARD\" has replicas");
    }
    return;
  }
  const Json strategy = *object.find("strategy");
  if (!traits_of(facts_.torch).fsdp_has_hybrid) {
    read_.error(strategy, fmt::format("PyTorch {} has no ShardingStrategy.HYBRID_SHARD; {} has it",
                                      traits_of(facts_.torch).name, traits_of(newest_torch).name));
  }
  if (!model.replicate_group || !object.find("group")) {
    read_.error(
        strategy,
        "a hybrid strategy shards inside \"group\" and replicates across \"replicate_group\": it needs both");
  }
}

ObjectKind Lowering::lower_data_parallel(const Json& object) {
  DataParallelOptions options;
  object.read("gpus", options.gpus);
  object.read("output_device", options.output_device);
  object.read("batch_size", options.batch_size);
  read_.given(object.find("input"), options.input, &ValueReader::bytes);
  read_.given(object.find("activations"), options.activations, &ValueReader::bytes);
  read_.given(object.find("output"), options.output, &ValueReader::bytes);
  if (options.output_device >= options.gpus) {
    read_.error(*object.find("output_device"),
                fmt::format("there is no GPU {}; \"gpus\" is {}", options.output_device, options.gpus));
  }
  const auto parameters = object.find("parameters");
  if (!parameters) {
    read_.error(object, without_parameters);
  }
  for (const ParameterSpec& spec : read_parameters(parameters, "parameter")) {
    options.parameters += spec.shape.numel() * static_cast<std::int64_t>(size_of(spec.dtype));
  }
  const auto optimizer = object.find("optimizer");
  if (optimizer && optimizer->text() == "adam") {
    options.optimizer_state = 2 * options.parameters;
  }
  return DataParallelObject{options};
}

std::vector<ParameterSpec> Lowering::read_parameters(const std::optional<Json>& list,
                                                     std::string_view singular) {
  std::vector<ParameterSpec> parameters;
  if (list) {
    for (Json node : list->children()) {
      read_parameter(node, singular, parameters);
    }
  }
  return parameters;
}

namespace {

constexpr std::int64_t parameters_max = 1'000'000;  // of one model: far above any real one

std::int64_t elements_of(std::int64_t bytes, Dtype dtype) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  return (bytes + size - 1) / size;
}

}  // namespace

// A number of elements, a size such as "25MiB", or an object.
void Lowering::read_parameter(const Json& node, std::string_view singular,
                              std::vector<ParameterSpec>& parameters) {
  ParameterSpec spec;
  spec.name = fmt::format("{}{}", singular, parameters.size());
  std::int64_t count = 1;
  if (node.is(JsonType::integer)) {
    spec.shape = {node.integer()};
  } else if (node.is(JsonType::string)) {
    spec.shape = {elements_of(read_.bytes(node), spec.dtype)};
  } else {
    read_.given(node.find("dtype"), spec.dtype, &ValueReader::dtype);
    node.read("name", spec.name);
    const auto numel = node.find("numel");
    const auto shape = node.find("shape");
    const auto bytes = node.find("bytes");
    if (numel.has_value() + shape.has_value() + bytes.has_value() != 1) {
      read_.error(node, "give one of \"numel\", \"shape\" and \"bytes\"");
    }
    if (numel) {
      spec.shape = {numel->integer()};
    } else if (bytes) {
      spec.shape = {elements_of(read_.bytes(*bytes), spec.dtype)};
    } else if (shape) {
      const TableIndex index = read_.shape(*shape);
      spec.shape = index == none ? Shape{1} : program_->shapes[index];
    }
    node.read("value", spec.value);
    node.read("requires_grad", spec.requires_grad);
    node.read("count", count);
  }
  if (spec.shape.numel() > numel_max) {
    read_.error(node, fmt::format("a tensor of {} elements is too large", spec.shape.numel()));
  }
  if (count > parameters_max - static_cast<std::int64_t>(parameters.size())) {
    read_.error(node, fmt::format("a model has at most {} {}s", parameters_max, singular));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    parameters.push_back(spec);
    if (count > 1) {
      parameters.back().name += fmt::format(".{}", i);
    }
  }
}

ObjectKind Lowering::lower_optimizer(const Json& object) {
  OptimizerObject optimizer;
  optimizer.zero.name = object.key();
  const bool is_zero = object.find("kind")->text() == "zero";
  const auto of = object.find("of");
  if (!of) {
    read_.error(object, "\"of\" is missing: the model whose parameters are optimized");
  } else {
    optimizer.model = read_.object(*of);
    if (!is_model(optimizer.model) && optimizer.model != none) {
      read_.error(*of, fmt::format("\"{}\" is not a model defined before this object", of->text()));
    } else if (program_->is<DataParallelObject>(optimizer.model)) {
      read_.error(*of, "a model of kind \"dp\" gets its optimizer from its key \"optimizer\"");
    }
  }
  optimizer.is_zero = is_zero && program_->is<ModelObject>(optimizer.model);
  if (const auto name = object.find("optimizer")) {
    optimizer.options.kind =
        name->text() == "adam" ? OptimizerOptions::Kind::adam : OptimizerOptions::Kind::sgd;
  }
  object.read("lr", optimizer.options.lr);
  object.read("momentum", optimizer.options.momentum);
  object.read("weight_decay", optimizer.options.weight_decay);
  const auto flag = object.find("parameters_as_bucket_view");
  read_.given(flag, optimizer.zero.parameters_as_bucket_view, &ValueReader::flag);
  if (flag && !is_zero) {
    read_.error(*flag, "only an object of kind \"zero\" has parameters as bucket views");
  }
  return optimizer;
}

bool Lowering::is_model(TableIndex object) const {
  return program_->is<ModelObject, ShardedObject, FullyShardedObject, DataParallelObject>(object);
}

bool Lowering::require_model(const Statement& statement, TableIndex object) {
  if (!is_model(object) && object != none) {
    read_.error(statement.head(),
                fmt::format("\"{}\" needs an object of kind \"ddp\", \"fsdp\" or \"fully_shard\"",
                            statement.rule().key));
  }
  return is_model(object);
}

namespace {

// As DDP counts them.
std::vector<std::string> trainable_names(const ModelObject& model) {
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : model.parameters) {
    if (parameter.requires_grad) {
      names.push_back(parameter.name);
    }
  }
  return names;
}

}  // namespace

// What is unused has names: of parameters, or in a fully_shard's forward, of units.
TableIndex Lowering::read_pass(const Statement& statement, TableIndex object) {
  ModelPass pass;
  read_.given(statement.find("grad"), pass.grad_enabled, &ValueReader::flag);
  read_.given(statement.find("value"), pass.value, &ValueReader::number);
  const auto* const ddp = program_->find<ModelObject>(object);
  const auto* const sharded = program_->find<FullyShardedObject>(object);
  const bool fits = ddp != nullptr || (sharded != nullptr && statement.rule().key == "forward");
  for (const char* key : {"grad", "unused"}) {
    if (const auto stray = statement.find(key); stray && !fits) {
      read_.error(*stray, fmt::format("\"{}\" is for models of kind \"ddp\"", key));
    }
  }
  if (const auto unused = statement.find("unused"); unused && fits) {
    const std::vector<std::string> names = ddp != nullptr ? trainable_names(*ddp) : sharded->unit_names;
    for (Json node : unused->children()) {
      pass.unused.push_back(read_part(node, object, names));
    }
  }
  return add_entry(program_->passes, std::move(pass));
}

// Returns the place of a unit or a parameter among `parts`; reports an error if it is not there.
std::uint32_t Lowering::read_part(const Json& name, TableIndex object,
                                  const std::vector<std::string>& parts) {
  const auto found = std::ranges::find(parts, name.text());
  if (found == parts.end()) {
    const bool has_units = program_->is<FullyShardedObject>(object);
    read_.error(name,
                fmt::format("\"{}\" has no {} \"{}\"{}", program_->objects[object].name,
                            has_units ? "unit" : "parameter", name.text(),
                            has_units ? "" : " that requires a gradient"),
                suggest_from(name.text(), parts));
    return 0;
  }
  return static_cast<std::uint32_t>(found - parts.begin());
}

void Lowering::lower_model_forward(const Statement& statement, TableIndex object) {
  if (in_object_) {
    read_.error(statement.node(), "\"forward\" inside an object is not supported by this version");
    return;
  }
  if (!enter_nesting(statement)) {
    return;
  }
  const TableIndex pass = read_pass(statement, object);
  const Address enter = here();
  emit(statement.node(), action::ModelForward{object, pass, 0});
  if (const auto body = statement.find("do")) {
    lower_statements(*body);
  }
  at<action::ModelForward>(enter).end = here();
  --nesting_;
}

void Lowering::lower_backward(const Statement& statement) {
  const TableIndex object = read_.object(statement.head());
  if (lower_parallel(statement, object, ParallelVerb::backward)) {
    return;
  }
  if (require_model(statement, object)) {
    emit(statement.node(), action::Backward{object, read_pass(statement, object)});
  }
}

void Lowering::lower_step(const Statement& statement) {
  const TableIndex object = read_.object(statement.head());
  if (lower_parallel(statement, object, ParallelVerb::step)) {
    return;
  }
  if (object != none && !program_->is<OptimizerObject>(object)) {
    read_.error(
        statement.head(),
        "\"step\" needs an object of kind \"zero\", \"optimizer\", \"pipeline\" or \"tensor_parallel\"");
  }
  emit(statement.node(), action::Step{object});
}

void Lowering::lower_zero_grad(const Statement& statement) {
  action::ZeroGrad zero{.model = read_.object(statement.head())};
  if (const auto* const optimizer = program_->find<OptimizerObject>(zero.model)) {
    zero.model = optimizer->model;
  } else {
    require_model(statement, zero.model);
  }
  read_.given(statement.find("set_to_none"), zero.set_to_none, &ValueReader::flag);
  emit(statement.node(), zero);
}

void Lowering::lower_state_dict(const Statement& statement) {
  action::StateDict dict;
  dict.object = read_.object(statement.head());
  dict.consolidates = statement.rule().key == "consolidate_state_dict";
  const auto* const optimizer = program_->find<OptimizerObject>(dict.object);
  if (dict.consolidates && dict.object != none && (optimizer == nullptr || !optimizer->is_zero)) {
    read_.error(statement.head(), "\"consolidate_state_dict\" needs an object of kind \"zero\"");
  } else if (optimizer == nullptr) {
    require_model(statement, dict.object);
  }
  read_.given(statement.find("to"), dict.to, &ValueReader::number);
  emit(statement.node(), dict);
}

void Lowering::lower_no_sync(const Statement& statement) {
  const TableIndex object = read_.object(statement.head());
  if (program_->is<DataParallelObject>(object)) {
    read_.error(statement.head(), "DataParallel has no no_sync: it synchronizes nothing between processes");
    return;
  }
  if (!require_model(statement, object) || !enter_nesting(statement)) {
    return;
  }
  const Address enter = here();
  emit(statement.node(), action::EnterNoSync{object, 0});
  if (const auto body = require(statement, "do")) {
    lower_statements(*body);
  }
  at<action::EnterNoSync>(enter).end = here();
  --nesting_;
}

}  // namespace rollcall::scenario
