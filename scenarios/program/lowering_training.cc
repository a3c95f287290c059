// Lowering, the part about training: models, optimizers, and the statements that use them.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/lowering.h"
#include "scenarios/program/units.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::scenario {
namespace {

using Key = std::string_view;

constexpr std::array<Key, 7> joinable_keys{"kind",        "forward", "main_hook", "post_hook",
                                           "join_device", "group",   "notify"};
constexpr std::array<Key, 17> model_keys{"kind",
                                         "group",
                                         "parameters",
                                         "buffers",
                                         "bucket_cap",
                                         "bucket_cap_mb_list",
                                         "first_bucket",
                                         "broadcast_buffers",
                                         "forward_sync_buffers",
                                         "find_unused_parameters",
                                         "skip_all_reduce_unused_params",
                                         "gradient_as_bucket_view",
                                         "static_graph",
                                         "comm_hook",
                                         "forward_time",
                                         "backward_time",
                                         "tokens"};
// Arguments that DistributedDataParallel gained late: TorchTraits::ddp_takes_new_arguments.
constexpr std::array<Key, 3> new_model_keys{"bucket_cap_mb_list", "forward_sync_buffers",
                                            "skip_all_reduce_unused_params"};
constexpr std::array<Key, 9> sharded_keys{"kind",         "group",           "units",
                                          "strategy",     "replicate_group", "mixed_precision",
                                          "forward_time", "backward_time",   "tokens"};
constexpr std::array<Key, 11> fully_sharded_keys{"kind",
                                                 "group",
                                                 "replicate_group",
                                                 "units",
                                                 "root",
                                                 "reshard_after_forward",
                                                 "mp_policy",
                                                 "forward_prefetch",
                                                 "backward_prefetch",
                                                 "reduce_scatter_unused_params",
                                                 "tokens"};
constexpr std::array<Key, 9> data_parallel_keys{"kind",          "parameters", "gpus",
                                                "output_device", "batch_size", "input",
                                                "activations",   "output",     "optimizer"};
constexpr std::array<Key, 7> optimizer_keys{
    "kind", "of", "optimizer", "lr", "momentum", "weight_decay", "parameters_as_bucket_view"};

constexpr std::array<Key, 14> pipeline_keys{
    "kind",    "group",    "schedule",        "stages",  "microbatches", "input_args",  "infer_shapes",
    "forward", "backward", "backward_weight", "unshard", "reshard",      "reduce_grad", "defer_pp_recv"};
constexpr std::array<Key, 4> parallel_module_keys{"kind", "group", "input_args", "modules"};
constexpr std::array<Key, 6> ring_keys{"kind",          "group",        "input_args",
                                       "rotate_method", "load_balance", "causal"};

std::span<const Key> keys_of(std::string_view kind) {
  if (kind == "pipeline") {
    return pipeline_keys;
  }
  if (kind == "tensor_parallel") {
    return parallel_module_keys;
  }
  if (kind == "context_parallel") {
    return ring_keys;
  }
  if (kind == "joinable") {
    return joinable_keys;
  }
  if (kind == "ddp") {
    return model_keys;
  }
  if (kind == "dp") {
    return data_parallel_keys;
  }
  if (kind == "fully_shard") {
    return fully_sharded_keys;
  }
  return kind == "fsdp" ? std::span<const Key>(sharded_keys) : std::span<const Key>(optimizer_keys);
}

}  // namespace

// The schema knows the keys of all kinds; this checks which belong together.
void Lowering::check_object_keys(const Json& object) {
  const std::string_view kind = object.find("kind")->text();
  const auto keys = keys_of(kind);
  for (Json member : object.children()) {
    if (std::ranges::find(keys, member.key()) == keys.end()) {
      diagnostics_.error(member.key_offset(), member.pointer(),
                         fmt::format("an object of kind \"{}\" has no \"{}\"; it takes {}", kind,
                                     member.key(), fmt::join(keys, ", ")),
                         suggest(member.key(), keys));
    }
  }
}

void Lowering::lower_object(const Json& object) {
  check_object_keys(object);
  const std::string_view kind = object.find("kind")->text();
  if (kind == "joinable") {
    return lower_joinable(object);
  }
  if (kind == "pipeline") {
    lower_pipeline(object);
  } else if (kind == "tensor_parallel") {
    lower_parallel_module(object);
  } else if (kind == "context_parallel") {
    lower_ring(object);
  } else if (kind == "ddp") {
    lower_model(object);
  } else if (kind == "fsdp") {
    lower_sharded(object);
  } else if (kind == "fully_shard") {
    lower_fully_sharded(object);
  } else if (kind == "dp") {
    lower_data_parallel(object);
  } else {
    lower_optimizer(object);
  }
  JoinableObject placeholder;  // keeps the index
  placeholder.name = object.key();
  program_->objects.push_back(std::move(placeholder));
}

std::int64_t Lowering::read_bytes(const Json& value) {
  const Quantity bytes = parse_bytes(read_.string(value, "a size such as \"25MiB\""));
  if (!bytes.value) {
    read_.error(value, bytes.problem);
  }
  return std::max<std::int64_t>(bytes.value.value_or(1), 1);
}

// distributed.py, _BucketCapacityConfig.
std::vector<std::int64_t> Lowering::read_caps(const Json& list) {
  constexpr double mebi = 1024 * 1024;
  std::vector<std::int64_t> caps;
  for (Json cap : list.children()) {
    caps.push_back(std::max<std::int64_t>(static_cast<std::int64_t>(cap.real() * mebi), 1));
  }
  return caps;
}

void Lowering::check_model_release(const Json& object) {
  const TorchTraits& torch = traits_of(facts_.torch);
  for (const Key key : new_model_keys) {
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
  if (const auto time = object.find("forward_time")) {
    work.forward_time = read_.duration(*time);
  }
  if (const auto time = object.find("backward_time")) {
    work.backward_time = read_.duration(*time);
  }
  if (const auto tokens = object.find("tokens")) {
    require_gpu(*tokens);
    if (work.has_times()) {
      read_.error(*tokens, "a model has either times or \"tokens\" that times follow from");
    }
    work.tokens = read_.amount(*tokens);
  }
}

void Lowering::lower_model(const Json& object) {
  check_model_release(object);
  const Position position = source_.position(object.offset());
  ModelObject model;
  model.name = object.key();
  model.line = position.line;
  model.column = position.column;
  if (const auto parameters = object.find("parameters")) {
    model.parameters = read_parameters(*parameters, "parameter");
  }
  if (const auto buffers = object.find("buffers")) {
    model.buffers = read_parameters(*buffers, "buffer");
  }
  const auto read_flag = [&](std::string_view key, bool& flag) {
    if (const auto value = object.find(key)) {
      flag = read_.flag(*value);
    }
  };
  if (const auto value = object.find("broadcast_buffers")) {
    model.broadcast_buffers = read_.flag(*value);
  }
  if (const auto value = object.find("forward_sync_buffers")) {
    model.forward_sync_buffers = read_.flag(*value);
  }
  read_flag("find_unused_parameters", model.find_unused_parameters);
  read_flag("skip_all_reduce_unused_params", model.skip_all_reduce_unused_params);
  read_flag("gradient_as_bucket_view", model.gradient_as_bucket_view);
  read_flag("static_graph", model.static_graph);
  if (const auto group = object.find("group")) {
    model.group = read_.group(*group);
  }
  if (const auto cap = object.find("bucket_cap")) {
    model.bucket_cap_bytes = read_bytes(*cap);
  }
  if (const auto caps = object.find("bucket_cap_mb_list")) {
    model.bucket_cap_list = read_caps(*caps);
  }
  if (const auto first = object.find("first_bucket")) {
    model.first_bucket_bytes = read_bytes(*first);
  }
  if (const auto hook = object.find("comm_hook")) {
    model.comm_hook = hook->text() == "allreduce"       ? CommHookName::allreduce
                      : hook->text() == "fp16_compress" ? CommHookName::fp16_compress
                                                        : CommHookName::bf16_compress;
  }
  read_model_work(object, model.work);
  if (model.parameters.empty()) {
    read_.error(object, "a model needs \"parameters\", such as [1000, \"25MiB\"]");
  }
  program_->training.models.emplace(static_cast<TableIndex>(program_->objects.size()), std::move(model));
}

void Lowering::lower_sharded(const Json& object) {
  ShardedObject model;
  model.name = object.key();
  if (const auto group = object.find("group")) {
    model.group = read_.group(*group);
  }
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
    model.strategy = parse_sharding_strategy(strategy->text()).value_or(model.strategy);
  }
  if (const auto group = object.find("replicate_group")) {
    model.replicate_group = read_.group(*group);
    model.is_hybrid = true;
  }
  const bool wants_replicas = model.strategy == ShardingStrategy::hybrid_shard ||
                              model.strategy == ShardingStrategy::hybrid_shard_zero2;
  if (wants_replicas && !traits_of(facts_.torch).fsdp_has_hybrid) {
    read_.error(*object.find("strategy"),
                fmt::format("PyTorch {} has no ShardingStrategy.HYBRID_SHARD; {} has it",
                            traits_of(facts_.torch).name, traits_of(newest_torch).name));
  }
  if (wants_replicas && !(model.is_hybrid && object.find("group"))) {
    read_.error(
        *object.find("strategy"),
        "a hybrid strategy shards inside \"group\" and replicates across \"replicate_group\": it needs both");
  }
  if (!wants_replicas && model.is_hybrid) {
    read_.error(*object.find("replicate_group"), "only \"strategy\": \"HYBRID_SHARD\" has replicas");
  }
  if (const auto policy = object.find("mixed_precision")) {
    model.mixed_precision = read_policy(*policy);
  }
  read_model_work(object, model.work);
  program_->training.sharded.emplace(static_cast<TableIndex>(program_->objects.size()), std::move(model));
}

void Lowering::lower_data_parallel(const Json& object) {
  DataParallelObject model;
  model.name = object.key();
  DataParallelOptions& options = model.options;
  const auto read_integer = [&](std::string_view key, std::int64_t& number) {
    if (const auto value = object.find(key)) {
      number = value->integer();
    }
  };
  const auto read_size = [&](std::string_view key, std::int64_t& number) {
    if (const auto value = object.find(key)) {
      number = read_bytes(*value);
    }
  };
  read_integer("gpus", options.gpus);
  read_integer("output_device", options.output_device);
  read_integer("batch_size", options.batch_size);
  read_size("input", options.input);
  read_size("activations", options.activations);
  read_size("output", options.output);
  if (options.output_device >= options.gpus) {
    read_.error(*object.find("output_device"),
                fmt::format("there is no GPU {}; \"gpus\" is {}", options.output_device, options.gpus));
  }
  if (const auto parameters = object.find("parameters")) {
    for (const ParameterSpec& spec : read_parameters(*parameters, "parameter")) {
      options.parameters += spec.shape.numel() * static_cast<std::int64_t>(size_of(spec.dtype));
    }
  } else {
    read_.error(object, "a model needs \"parameters\", such as [1000, \"25MiB\"]");
  }
  const auto optimizer = object.find("optimizer");
  if (optimizer && optimizer->text() == "adam") {
    options.optimizer_state = 2 * options.parameters;
  }
  program_->training.data_parallel.emplace(static_cast<TableIndex>(program_->objects.size()),
                                           std::move(model));
}

std::vector<ParameterSpec> Lowering::read_parameters(const Json& list, std::string_view singular) {
  std::vector<ParameterSpec> parameters;
  for (Json node : list.children()) {
    read_parameter(node, singular, parameters);
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
    spec.shape = {elements_of(read_bytes(node), spec.dtype)};
  } else {
    if (const auto dtype = node.find("dtype")) {
      spec.dtype = read_.dtype(*dtype);
    }
    if (const auto name = node.find("name")) {
      spec.name = name->text();
    }
    const auto numel = node.find("numel");
    const auto shape = node.find("shape");
    const auto bytes = node.find("bytes");
    if (numel.has_value() + shape.has_value() + bytes.has_value() != 1) {
      read_.error(node, "give one of \"numel\", \"shape\" and \"bytes\"");
    }
    if (numel) {
      spec.shape = {numel->integer()};
    } else if (bytes) {
      spec.shape = {elements_of(read_bytes(*bytes), spec.dtype)};
    } else if (shape) {
      const TableIndex index = read_.shape(*shape);
      spec.shape = index == none ? Shape{1} : program_->shapes[index];
    }
    if (const auto value = node.find("value")) {
      spec.value = value->real();
    }
    if (const auto flag = node.find("requires_grad")) {
      spec.requires_grad = read_.flag(*flag);
    }
    if (const auto times = node.find("count")) {
      count = times->integer();
    }
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

void Lowering::lower_optimizer(const Json& object) {
  OptimizerObject optimizer;
  optimizer.name = object.key();
  optimizer.is_zero = object.find("kind")->text() == "zero";
  const auto of = object.find("of");
  if (!of) {
    read_.error(object, "\"of\" is missing: the model whose parameters are optimized");
  } else {
    optimizer.model = read_.object(*of);
    if (!is_model(optimizer.model) && optimizer.model != none) {
      read_.error(*of, fmt::format("\"{}\" is not a model defined before this object", of->text()));
    } else if (program_->training.data_parallel.contains(optimizer.model)) {
      read_.error(*of, "a model of kind \"dp\" gets its optimizer from its key \"optimizer\"");
    }
  }
  if (const auto name = object.find("optimizer")) {
    optimizer.options.kind =
        name->text() == "adam" ? OptimizerOptions::Kind::adam : OptimizerOptions::Kind::sgd;
  }
  const auto read_number = [&](std::string_view key, double& number) {
    if (const auto value = object.find(key)) {
      number = value->real();
    }
  };
  read_number("lr", optimizer.options.lr);
  read_number("momentum", optimizer.options.momentum);
  read_number("weight_decay", optimizer.options.weight_decay);
  if (const auto flag = object.find("parameters_as_bucket_view")) {
    optimizer.parameters_as_bucket_view = read_.flag(*flag);
    if (!optimizer.is_zero) {
      read_.error(*flag, "only an object of kind \"zero\" has parameters as bucket views");
    }
  }
  program_->training.optimizers.emplace(static_cast<TableIndex>(program_->objects.size()),
                                        std::move(optimizer));
}

bool Lowering::is_model(TableIndex object) const {
  const TrainingObjects& training = program_->training;
  return training.models.contains(object) || training.sharded.contains(object) ||
         training.fully_sharded.contains(object) || training.data_parallel.contains(object);
}

bool Lowering::require_model(const Statement& statement, TableIndex object) {
  if (!is_model(object) && object != none) {
    read_.error(statement.head(),
                fmt::format("\"{}\" needs an object of kind \"ddp\", \"fsdp\" or \"fully_shard\"",
                            statement.rule().key));
  }
  return is_model(object);
}

// Parameters by name; their indexes count those that require gradients.
TableIndex Lowering::read_pass(const Statement& statement, TableIndex object) {
  ModelPass pass;
  if (const auto grad = statement.find("grad")) {
    pass.grad_enabled = read_.flag(*grad);
  }
  if (const auto value = statement.find("value")) {
    pass.value = read_.number(*value);
  }
  const auto units = program_->training.fully_sharded.find(object);
  const bool has_units = units != program_->training.fully_sharded.end();
  const bool is_forward = statement.rule().key == "forward";
  if (const auto unused = statement.find("unused"); unused && has_units && is_forward) {
    for (Json node : unused->children()) {
      pass.unused.push_back(read_unit_name(node, units->second));
    }
    program_->passes.push_back(std::move(pass));
    return static_cast<TableIndex>(program_->passes.size() - 1);
  }
  const auto model = program_->training.models.find(object);
  const bool is_sharded = model == program_->training.models.end();  // or in DataParallel
  for (const char* key : {"grad", "unused"}) {
    if (const auto stray = statement.find(key); stray && is_sharded && !(has_units && is_forward)) {
      read_.error(*stray, fmt::format("\"{}\" is for models of kind \"ddp\"", key));
    }
  }
  if (const auto unused = statement.find("unused"); unused && !is_sharded) {
    std::vector<std::string> names;
    for (const ParameterSpec& parameter : model->second.parameters) {
      if (parameter.requires_grad) {
        names.push_back(parameter.name);
      }
    }
    for (Json node : unused->children()) {
      const auto found = std::ranges::find(names, node.text());
      if (found == names.end()) {
        read_.error(node,
                    fmt::format("\"{}\" has no parameter \"{}\" that requires a gradient", model->second.name,
                                node.text()),
                    suggest_from(node.text(), names));
        continue;
      }
      pass.unused.push_back(static_cast<std::uint32_t>(found - names.begin()));
    }
  }
  program_->passes.push_back(std::move(pass));
  return static_cast<TableIndex>(program_->passes.size() - 1);
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
  if (object != none && !program_->training.optimizers.contains(object)) {
    read_.error(
        statement.head(),
        "\"step\" needs an object of kind \"zero\", \"optimizer\", \"pipeline\" or \"tensor_parallel\"");
  }
  emit(statement.node(), action::Step{object});
}

void Lowering::lower_zero_grad(const Statement& statement) {
  const TableIndex object = read_.object(statement.head());
  if (object != none && !program_->training.optimizers.contains(object)) {
    require_model(statement, object);
  }
  const auto flag = statement.find("set_to_none");
  emit(statement.node(), action::ZeroGrad{object, flag && read_.flag(*flag)});
}

void Lowering::lower_state_dict(const Statement& statement) {
  action::StateDict dict;
  dict.object = read_.object(statement.head());
  dict.consolidates = statement.rule().key == "consolidate_state_dict";
  const auto optimizer = program_->training.optimizers.find(dict.object);
  const bool is_optimizer = optimizer != program_->training.optimizers.end();
  if (dict.consolidates && dict.object != none && !(is_optimizer && optimizer->second.is_zero)) {
    read_.error(statement.head(), "\"consolidate_state_dict\" needs an object of kind \"zero\"");
  } else if (dict.object != none && !is_optimizer) {
    require_model(statement, dict.object);
  }
  if (const auto to = statement.find("to")) {
    dict.to = read_.number(*to);
  }
  emit(statement.node(), dict);
}

void Lowering::lower_no_sync(const Statement& statement) {
  const TableIndex object = read_.object(statement.head());
  if (program_->training.data_parallel.contains(object)) {
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
