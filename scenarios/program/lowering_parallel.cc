// Lowering, the part about pipelines, tensor parallel, context parallel and meshes.

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/lowering.h"
#include "sim/base/error.h"

namespace rollcall::scenario {
namespace {

constexpr std::array<std::string_view, 5> style_names{
    "ColwiseParallel", "RowwiseParallel", "SequenceParallel", "PrepareModuleInput", "PrepareModuleOutput"};

std::optional<ParallelStyle> find_style(std::string_view name) {
  const auto found = std::ranges::find(style_names, name);
  return found == style_names.end() ? std::nullopt
                                    : std::optional(static_cast<ParallelStyle>(found - style_names.begin()));
}

}  // namespace

// A schedule is laid out when the file is read, so its group has to exist from the start.
Rank Lowering::size_of_group(const Json& object) {
  const auto group = object.find("group");
  if (!group || group->text() == "world") {
    return facts_.world_size;
  }
  const auto found = facts_.group_sizes.find(group->text());
  if (found == facts_.group_sizes.end()) {
    if (names_.makes_group(group->text())) {
      read_.error(*group,
                  fmt::format("the group \"{}\" is made by the program; \"groups\" or \"mesh\" must define "
                              "the group of a pipeline",
                              group->text()));
    }
    return 1;
  }
  return found->second;
}

std::vector<StageTensor> Lowering::read_input_args(const Json& object) {
  std::vector<StageTensor> tensors;
  for (const ParameterSpec& spec : read_parameters(object.find("input_args"), "input")) {
    tensors.push_back({.shape = spec.shape, .dtype = spec.dtype, .requires_grad = spec.requires_grad});
  }
  if (tensors.empty()) {
    tensors.emplace_back();
  }
  return tensors;
}

ObjectKind Lowering::lower_pipeline(const Json& object) {
  if (program_->stage == no_slot) {
    for (const char* name : {"stage", "microbatch"}) {
      if (names_.find(name)) {
        read_.error(object,
                    fmt::format("\"{}\" is a variable of pipelines; use another name elsewhere", name));
      }
    }
    program_->stage = names_.define_variable("stage");
    program_->microbatch = names_.define_variable("microbatch");
  }
  PipelineObject pipeline;
  PipelineShape shape{.ranks = size_of_group(object)};
  const auto schedule = object.find("schedule");
  shape.schedule = schedule ? find_schedule(schedule->text()).value_or(shape.schedule) : shape.schedule;
  shape.stages_per_rank = is_v_shaped(shape.schedule) ? 2 : 1;
  object.read("stages", shape.stages_per_rank);
  const auto microbatches = object.find("microbatches");
  if (!microbatches) {
    read_.error(object, "a pipeline needs \"microbatches\", such as 8");
  }
  shape.microbatches = microbatches ? static_cast<std::int32_t>(microbatches->integer()) : shape.ranks * 2;
  object.read("defer_pp_recv", shape.defers_recv);
  if (const auto infers = object.find("infer_shapes")) {
    pipeline.options.has_shapes = !read_.flag(*infers);
  }
  pipeline.options.tensors = read_input_args(object);
  try {
    pipeline.plan = std::make_shared<PipelinePlan>(make_pipeline_plan(shape));
  } catch (const Error& error) {
    read_.error(object, error.what());
  }
  pipeline.forward = lower_part(object, "forward");
  pipeline.backward = lower_part(object, "backward");
  pipeline.backward_weight = lower_part(object, "backward_weight");
  pipeline.unshard = lower_part(object, "unshard");
  pipeline.reshard = lower_part(object, "reshard");
  pipeline.reduce_grad = lower_part(object, "reduce_grad");
  return pipeline;
}

std::optional<Placement> Lowering::read_placement(const Json& node) {
  const auto placement = parse_placement(node.text());
  if (!placement) {
    read_.error(node,
                fmt::format("\"{}\" is not a placement; write \"Shard(0)\", \"Replicate()\" or \"Partial()\"",
                            node.text()));
  }
  return placement;
}

// A style alone, or an object with its arguments.
ParallelLayer Lowering::read_layer(const Json& node) {
  ParallelLayer layer;
  const auto style = node.is(JsonType::string) ? std::optional(node) : node.find("style");
  if (!style) {
    read_.error(node, "\"style\" is missing, such as \"ColwiseParallel\"");
    return layer;
  }
  const auto known = find_style(style->text());
  if (!known) {
    read_.error(
        *style,
        fmt::format("unknown style \"{}\"; the styles are {}", style->text(), fmt::join(style_names, ", ")),
        suggest(style->text(), style_names));
    return layer;
  }
  layer.style = *known;
  if (node.is(JsonType::string)) {
    return layer;
  }
  const auto read_layouts = [&](std::string_view key, std::optional<Placement>& layouts) {
    if (const auto value = node.find(key)) {
      layouts = read_placement(*value);
    }
  };
  node.read("in_features", layer.in_features);
  node.read("out_features", layer.out_features);
  node.read("count", layer.count);
  node.read("sequence_dim", layer.sequence_dim);
  read_layouts("input_layouts", layer.input_layouts);
  read_layouts("output_layouts", layer.output_layouts);
  read_layouts("desired_input_layouts", layer.desired_input_layouts);
  read_layouts("desired_output_layouts", layer.desired_output_layouts);
  node.read("bias", layer.has_bias);
  node.read("embedding", layer.is_embedding);
  node.read("use_local_output", layer.use_local_output);
  return layer;
}

ObjectKind Lowering::lower_parallel_module(const Json& object) {
  ParallelModuleObject module;
  const StageTensor input = read_input_args(object).front();
  module.input = {.shape = input.shape, .dtype = input.dtype, .requires_grad = input.requires_grad};
  if (const auto modules = object.find("modules")) {
    for (Json node : modules->children()) {
      module.layers.push_back(read_layer(node));
    }
  } else {
    read_.error(object, "parallel modules need \"modules\", such as [{\"style\": \"ColwiseParallel\"}]");
  }
  return module;
}

ObjectKind Lowering::lower_ring(const Json& object) {
  const StageTensor key = read_input_args(object).front();
  RingOptions options{.key = key.shape, .dtype = key.dtype};
  if (const auto method = object.find("rotate_method")) {
    options.rotate_method = method->text() == "alltoall" ? RotateMethod::alltoall : RotateMethod::allgather;
  }
  object.read("load_balance", options.is_load_balanced);
  object.read("causal", options.is_causal);
  return RingObject{options};
}

// Returns true if the object is one of these; the statement has then been lowered, or refused.
bool Lowering::lower_parallel(const Statement& statement, TableIndex object, ParallelVerb verb) {
  if (!program_->is<PipelineObject, ParallelModuleObject, RingObject>(object)) {
    return false;
  }
  const bool is_pipeline = program_->is<PipelineObject>(object);
  const bool can = is_pipeline ? verb == ParallelVerb::step || verb == ParallelVerb::eval
                   : program_->is<ParallelModuleObject>(object)
                       ? verb != ParallelVerb::eval
                       : verb == ParallelVerb::forward || verb == ParallelVerb::backward;
  if (!can) {
    read_.error(
        statement.head(),
        fmt::format("\"{}\" {}", statement.rule().key,
                    is_pipeline ? "does not fit a pipeline, which has \"step\" and \"eval\""
                                : "does not fit this object, which has \"forward\" and \"backward\""));
  } else if (is_pipeline && in_object_) {
    read_.error(statement.node(), "a pipeline inside an object is not supported by this version");
  } else if (statement.node().size() > 1) {
    read_.error(statement.node(),
                fmt::format("\"{}\" of this object takes no arguments", statement.rule().key));
  } else {
    emit(statement.node(), action::RunParallel{object, verb});
  }
  return true;
}

void Lowering::lower_parallelize(const Statement& statement) {
  const TableIndex object = read_.object(statement.head());
  if (!lower_parallel(statement, object, ParallelVerb::parallelize) && object != none) {
    read_.error(statement.head(), "\"parallelize_module\" needs an object of kind \"tensor_parallel\"");
  }
}

void Lowering::lower_eval(const Statement& statement) {
  const TableIndex object = read_.object(statement.head());
  if (!lower_parallel(statement, object, ParallelVerb::eval) && object != none) {
    read_.error(statement.head(), "\"eval\" needs an object of kind \"pipeline\"");
  }
}

void Lowering::lower_init_device_mesh(const Statement& statement) {
  MeshStatement mesh;
  mesh.label = read_label(statement);
  const auto shape = statement.subject();
  const auto names = require(statement, "mesh_dim_names");
  if (!shape || !names) {
    if (!shape) {
      read_.error(statement.node(), "\"init_device_mesh\" needs a shape, such as [2, 4]");
    }
    return;
  }
  if (!shape->is(JsonType::array) || shape->size() != names->size()) {
    read_.error(*shape, "a mesh needs as many sizes as \"mesh_dim_names\"");
    return;
  }
  for (Json size : shape->children()) {
    mesh.shape.sizes.push_back(size.is(JsonType::integer) ? static_cast<Rank>(size.integer()) : 0);
    if (mesh.shape.sizes.back() < 1 || mesh.shape.sizes.back() > facts_.world_size) {
      read_.error(size, fmt::format("must be a number from 1 to {}", facts_.world_size));
      return;
    }
  }
  for (Json name : names->children()) {
    mesh.shape.dim_names.emplace_back(read_.string(name, "a dimension's name"));
    mesh.made.push_back(read_.made_group(name));
  }
  if (const auto flattened = statement.find("flatten")) {
    for (Json entry : flattened->children()) {
      MeshStatement::Flattened one{std::string(entry.key()), {}, read_.made_group_named(entry, entry.key())};
      for (Json dim : entry.children()) {
        one.dims.emplace_back(read_.string(dim, "a dimension's name"));
      }
      mesh.flattened.push_back(std::move(one));
    }
  }
  emit(statement.node(), action::InitMesh{add_entry(program_->meshes, std::move(mesh))});
}

}  // namespace rollcall::scenario
