// Lowering, the part about fully_shard: models of that kind, and the statements for FSDPModule's methods.

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/lowering.h"

namespace rollcall::scenario {
namespace {

// Units without times of their own compute for the model's tokens.
void share_tokens(ShardedUnit& unit, const Operand& tokens) {
  if (!unit.work.has_times()) {
    unit.work.tokens = tokens;
  }
  for (ShardedUnit& inner : unit.units) {
    share_tokens(inner, tokens);
  }
}

using Method = action::ShardingCall::Method;

struct NamedMethod {
  std::string_view name;
  Method method;
  bool takes_value = true;
};
constexpr std::array<NamedMethod, 7> methods{{
    {"unshard", Method::unshard, false},
    {"reshard", Method::reshard, false},
    {"set_requires_gradient_sync", Method::set_requires_gradient_sync},
    {"set_requires_all_reduce", Method::set_requires_all_reduce},
    {"set_reshard_after_forward", Method::set_reshard_after_forward},
    {"set_reshard_after_backward", Method::set_reshard_after_backward},
    {"set_is_last_backward", Method::set_is_last_backward},
}};

const NamedMethod& method_called(std::string_view name) {
  return *std::ranges::find(methods, name, &NamedMethod::name);
}

}  // namespace

MixedPrecisionPolicy Lowering::read_policy(const std::optional<Json>& value) {
  MixedPrecisionPolicy policy;
  if (value) {
    read_.given(value->find("param_dtype"), policy.param_dtype, &ValueReader::dtype);
    read_.given(value->find("reduce_dtype"), policy.reduce_dtype, &ValueReader::dtype);
  }
  return policy;
}

ObjectKind Lowering::lower_fully_sharded(const Json& object) {
  FullyShardedObject model;
  model.options.name = object.key();
  model.unit_names.emplace_back();  // the root's
  read_.given(object.find("replicate_group"), model.replicate_group, &ValueReader::group);
  if (const auto units = object.find("units")) {
    for (Json unit : units->children()) {
      const std::string name = std::to_string(model.root.units.size());
      model.root.units.push_back(read_unit(unit, name, model));
    }
  }
  if (const auto root = object.find("root")) {
    read_root(*root, model.root);
  }
  if (model.root.units.empty() && model.root.parameters.empty()) {
    read_.error(object, "a sharded model needs \"units\", such as [[1000], [\"25MiB\"]], or a \"root\"");
  }
  if (const auto reshard = object.find("reshard_after_forward")) {
    model.options.reshard_after_forward = read_reshard(*reshard);
  }
  model.options.mp_policy = read_policy(object.find("mp_policy"));
  object.read("forward_prefetch", model.forward_prefetch);
  object.read("backward_prefetch", model.backward_prefetch);
  object.read("reduce_scatter_unused_params", model.reduce_scatter_unused_params);
  ModelWork whole;
  read_model_work(object, whole);
  share_tokens(model.root, whole.tokens);
  return model;
}

// A list of parameters, or an object. Units are numbered in the order of the file.
ShardedUnit Lowering::read_unit(const Json& node, const std::string& name, FullyShardedObject& model) {
  ShardedUnit unit;
  unit.name = name;
  if (node.is(JsonType::array)) {
    unit.parameters = read_parameters(node, "parameter");
    model.unit_names.push_back(name);
    return unit;
  }
  node.read("name", unit.name);
  if (std::ranges::find(model.unit_names, unit.name) != model.unit_names.end()) {
    read_.error(node, fmt::format("there is a unit called \"{}\" already", unit.name));
  }
  model.unit_names.push_back(unit.name);
  unit.parameters = read_parameters(node.find("parameters"), "parameter");
  if (const auto units = node.find("units")) {
    for (Json inner : units->children()) {
      const std::string inner_name = fmt::format("{}.{}", unit.name, unit.units.size());
      unit.units.push_back(read_unit(inner, inner_name, model));
    }
  }
  if (unit.parameters.empty() && unit.units.empty()) {
    read_.error(node, "a unit needs \"parameters\", such as [1000, \"25MiB\"]");
  }
  read_unit_keys(node, unit);
  return unit;
}

// A list of parameters that the root uses on both sides of its units, or an object that says on which side.
void Lowering::read_root(const Json& node, ShardedUnit& root) {
  if (node.is(JsonType::array)) {
    root.parameters = read_parameters(node, "parameter");
    root.before = (root.parameters.size() + 1) / 2;
    return;
  }
  root.parameters = read_parameters(node.find("before"), "before");
  root.before = root.parameters.size();
  for (ParameterSpec& parameter : read_parameters(node.find("after"), "after")) {
    root.parameters.push_back(std::move(parameter));
  }
  read_unit_keys(node, root);
}

void Lowering::read_unit_keys(const Json& node, ShardedUnit& unit) {
  if (const auto reshard = node.find("reshard_after_forward")) {
    unit.reshard_after_forward = read_reshard(*reshard);
  }
  read_model_work(node, unit.work);
}

ReshardAfterForward Lowering::read_reshard(const Json& value) {
  return value.is(JsonType::integer) ? ReshardAfterForward::to(static_cast<Rank>(value.integer()))
                                     : ReshardAfterForward::of(read_.flag(value));
}

void Lowering::lower_sharding(const Statement& statement) {
  const NamedMethod& method = method_called(statement.rule().key);
  action::ShardingCall call;
  call.object = read_.object(statement.head());
  call.method = method.method;
  const auto* const model = program_->find<FullyShardedObject>(call.object);
  if (model == nullptr) {
    if (call.object != none) {
      read_.error(statement.head(),
                  fmt::format("\"{}\" needs an object of kind \"fully_shard\"", method.name));
    }
    return;
  }
  if (const auto unit = statement.find("unit")) {
    call.unit = read_part(*unit, call.object, model->unit_names);
  }
  if (method.takes_value) {
    const auto value = require(statement, "value");
    call.value = value && read_.flag(*value);
  }
  emit(statement.node(), call);
}

void Lowering::lower_clip_grad_norm(const Statement& statement) {
  action::ClipGradNorm clip;
  clip.object = read_.object(statement.head());
  if (clip.object != none && !program_->is<FullyShardedObject, ShardedObject>(clip.object)) {
    read_.error(statement.head(), "\"clip_grad_norm\" needs an object of kind \"fully_shard\" or \"fsdp\"");
  }
  if (const auto norm = statement.find("max_norm")) {
    clip.max_norm = read_.constant(*norm, "the largest norm");
    if (clip.max_norm < 0) {
      read_.error(*norm, "the largest norm cannot be negative");
    }
  }
  if (const auto type = statement.find("norm_type")) {
    clip.norm_type = read_.constant(*type, "the type of the norm");
  }
  emit(statement.node(), clip);
}

}  // namespace rollcall::scenario
