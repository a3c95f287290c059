#include "traces/dumps/recorded_call.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rollcall::traces {

namespace {

using check::DumpCall;
using Shapes = std::vector<std::vector<std::int64_t>>;

// Profiling titles of torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and ProcessGroupGloo.cpp, without the
// backend's prefix. Where an operation has several the first is written; the others are older, or Gloo's.
constexpr std::array<std::pair<std::string_view, OpKind>, 23> names = {{
    {"all_reduce", OpKind::all_reduce},
    {"allreduce_coalesced", OpKind::all_reduce_coalesced},
    {"broadcast", OpKind::broadcast},
    {"reduce", OpKind::reduce},
    {"all_gather", OpKind::all_gather},
    {"_all_gather_base", OpKind::all_gather_into_tensor},
    {"gather", OpKind::gather},
    {"scatter", OpKind::scatter},
    {"reduce_scatter", OpKind::reduce_scatter},
    {"_reduce_scatter_base", OpKind::reduce_scatter_tensor},
    {"all_to_all", OpKind::all_to_all_single},
    {"all_reduce_barrier", OpKind::barrier},
    {"send", OpKind::send},
    {"recv", OpKind::recv},
    {"barrier", OpKind::barrier},
    {"allreduce", OpKind::all_reduce},
    {"allgather", OpKind::all_gather},
    {"all_gather_into_tensor", OpKind::all_gather_into_tensor},
    {"reduce_scatter_tensor", OpKind::reduce_scatter_tensor},
    {"all_reduce_coalesced", OpKind::all_reduce_coalesced},
    {"alltoall", OpKind::all_to_all_single},
    {"alltoall_base", OpKind::all_to_all_single},
    {"all_to_all_single", OpKind::all_to_all_single},
}};

std::string_view name_of(OpKind kind, bool reduces_barriers) {
  if (kind == OpKind::barrier && !reduces_barriers) {
    return "barrier";
  }
  const OpKind written = kind == OpKind::all_to_all ? OpKind::all_to_all_single : kind;
  const auto found = std::ranges::find(names, written, &std::pair<std::string_view, OpKind>::second);
  return found == names.end() ? to_string(kind) : found->first;
}

Shapes shapes_of(const TensorList* tensors) {
  Shapes shapes;
  for (std::size_t i = 0; tensors != nullptr && i < tensors->size(); ++i) {
    shapes.push_back({(*tensors)[i].numel()});
  }
  return shapes;
}

Shapes shape_of(const Storage* tensor) { return tensor == nullptr ? Shapes() : Shapes{{tensor->numel}}; }

// A list of equal tensors lies in one piece on the way, and is recorded as that piece.
Shapes in_one_piece(const Shapes& shapes) {
  const bool even = std::ranges::all_of(shapes, [&](const auto& shape) { return shape == shapes.front(); });
  if (shapes.size() < 2 || !even) {
    return shapes;
  }
  return {{static_cast<std::int64_t>(shapes.size()), shapes.front().front()}};
}

void set_shapes(const Op& op, Rank members, bool reduces_barriers, DumpCall& call) {
  const OpTensors& tensors = op.tensors;
  switch (op.kind) {
    case OpKind::barrier:
      if (reduces_barriers) {  // an all_reduce of one element
        call.inputs = call.outputs = {{1}};
      }
      return;
    case OpKind::all_reduce_coalesced:
      call.inputs = call.outputs = shapes_of(tensors.inputs);
      return;
    case OpKind::all_gather:
      call.inputs = shape_of(tensors.input);
      call.outputs =
          tensors.outputs != nullptr ? in_one_piece(shapes_of(tensors.outputs)) : Shapes{{members, op.numel}};
      return;
    case OpKind::reduce_scatter:
      call.inputs = in_one_piece(shapes_of(tensors.inputs));
      call.outputs = shape_of(tensors.output);
      return;
    case OpKind::all_gather_into_tensor:
    case OpKind::reduce_scatter_tensor:
    case OpKind::all_to_all_single:
      call.inputs = shape_of(tensors.input);
      call.outputs = shape_of(tensors.output);
      return;
    case OpKind::gather:
      call.inputs = shape_of(tensors.input);
      call.outputs = shapes_of(tensors.outputs);
      return;
    case OpKind::scatter:
      call.inputs = shapes_of(tensors.inputs);
      call.outputs = shape_of(tensors.output);
      return;
    case OpKind::all_to_all:
      call.inputs = shapes_of(tensors.inputs);
      call.outputs = shapes_of(tensors.outputs);
      return;
    case OpKind::all_reduce:
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::send:
    case OpKind::recv:
    case OpKind::monitored_barrier:
    case OpKind::new_group:
    case OpKind::split_group:
    case OpKind::destroy_process_group:
    case OpKind::batch_isend_irecv:
    case OpKind::store_get:
    case OpKind::store_wait:
      call.inputs = call.outputs = shape_of(tensors.input);
      return;
  }
}

}  // namespace

DumpCall recorded_call(const Op& op, const BackendTraits& backend, Rank members) {
  const bool reduces_barriers = backend.records_messages;
  DumpCall call;
  call.backend = backend.name;
  call.op = name_of(op.kind, reduces_barriers);
  if (is_point_to_point(op.kind)) {
    call.source = op.kind == OpKind::send ? op.rank : op.root;
    call.destination = op.kind == OpKind::send ? op.root : op.rank;
  }
  set_shapes(op, members, reduces_barriers, call);
  const std::string dtype(scalar_type_name(op.kind == OpKind::barrier ? Dtype::float32 : op.dtype));
  call.input_dtypes.assign(call.inputs.size(), dtype);
  call.output_dtypes.assign(call.outputs.size(), dtype);
  return call;
}

DumpCall batch_marker(std::string_view backend) {
  DumpCall call;
  call.backend = backend;
  call.op = "coalesced";
  return call;
}

std::optional<OpKind> recorded_kind(std::string_view name) {
  const auto found = std::ranges::find(names, name, &std::pair<std::string_view, OpKind>::first);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace rollcall::traces
