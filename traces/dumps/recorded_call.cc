#include "traces/dumps/recorded_call.h"

#include <algorithm>

namespace rollcall::traces {

namespace {

using check::DumpCall;
using Shapes = std::vector<std::vector<std::int64_t>>;

// The profiling title in torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, or ProcessGroupGloo.cpp for a barrier.
std::string_view name_of(OpKind kind, bool reduces_barriers) {
  const std::string_view title = row_of(kind).titles.front();
  return title.empty() || (kind == OpKind::barrier && !reduces_barriers) ? to_string(kind) : title;
}

Shapes shapes_of(const TensorList* tensors) {
  Shapes shapes;
  for (std::size_t i = 0; tensors != nullptr && i < tensors->size(); ++i) {
    shapes.push_back({(*tensors)[i].numel()});
  }
  return shapes;
}

Shapes shape_of(const Storage* tensor) { return tensor == nullptr ? Shapes() : Shapes{{tensor->numel}}; }

// A list of equal tensors is sent as one contiguous piece and is recorded as that piece.
Shapes in_one_piece(const Shapes& shapes) {
  const bool even = std::ranges::all_of(shapes, [&](const auto& shape) { return shape == shapes.front(); });
  if (shapes.size() < 2 || !even) {
    return shapes;
  }
  return {{static_cast<std::int64_t>(shapes.size()), shapes.front().front()}};
}

void set_shapes(const Op& op, Rank members, bool reduces_barriers, DumpCall& call) {
  const OpTensors& tensors = op.tensors;
  const OpRow& row = row_of(op.kind);
  if (op.kind == OpKind::barrier && reduces_barriers) {
    call.inputs = call.outputs = {{1}};  // an all_reduce of one element
    return;
  }
  call.inputs = tensors.inputs != nullptr ? shapes_of(tensors.inputs) : shape_of(tensors.input);
  call.outputs = works_in_place(op.kind)      ? call.inputs
                 : tensors.outputs != nullptr ? shapes_of(tensors.outputs)
                                              : shape_of(tensors.output);
  if (row.sizes == Sizes::divided && row.given == Tensors::per_member) {
    call.inputs = in_one_piece(call.inputs);
  }
  if (row.sizes == Sizes::gathered && row.filled == Tensors::per_member) {
    call.outputs = tensors.outputs != nullptr ? in_one_piece(call.outputs) : Shapes{{members, op.numel}};
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
  std::optional<OpKind> kind;
  for (const OpRow& row : op_rows) {
    const bool is_recorded = !row.titles.front().empty() && !name.empty();
    if (is_recorded && (row.name == name || std::ranges::count(row.titles, name) > 0)) {
      kind = row.kind;  // the last match: "all_to_all" can mean either, and all_to_all_single says more
    }
  }
  return kind;
}

}  // namespace rollcall::traces
