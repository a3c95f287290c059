#include "traces/dumps/recorded_call.h"

#include <algorithm>
#include <charconv>

namespace rollcall::traces {

namespace {

using check::DumpCall;
using Shapes = std::vector<std::vector<std::int64_t>>;

Shapes shapes_of(const TensorList* tensors) {
  Shapes shapes;
  for (std::size_t i = 0; tensors != nullptr && i < tensors->size(); ++i) {
    shapes.push_back({(*tensors)[i].numel()});
  }
  return shapes;
}

Shapes shape_of(const Storage* tensor) { return tensor == nullptr ? Shapes() : Shapes{{tensor->numel}}; }

Shapes given_to(const Op& op) {
  return op.tensors.inputs != nullptr ? shapes_of(op.tensors.inputs) : shape_of(op.tensors.input);
}

Shapes filled_by(const Op& op) {
  return op.tensors.outputs != nullptr ? shapes_of(op.tensors.outputs) : shape_of(op.tensors.output);
}

// A list of equal tensors is sent as one contiguous piece and is recorded as that piece.
Shapes in_one_piece(const Shapes& shapes) {
  const bool even = std::ranges::all_of(shapes, [&](const auto& shape) { return shape == shapes.front(); });
  if (shapes.size() < 2 || !even) {
    return shapes;
  }
  return {{static_cast<std::int64_t>(shapes.size()), shapes.front().front()}};
}

// ProcessGroupNCCL.cpp: the profiling title.
void set_nccl(const Op& op, const OpRow& row, Rank members, DumpCall& call) {
  call.op = row.titles.front().empty() ? row.name : row.titles.front();
  if (op.kind == OpKind::barrier) {
    call.inputs = call.outputs = {{1}};  // an all_reduce of one element
    return;
  }
  call.inputs = given_to(op);
  call.outputs = works_in_place(op.kind) ? call.inputs : filled_by(op);
  if (row.sizes == Sizes::divided && row.given == Tensors::per_member) {
    call.inputs = in_one_piece(call.inputs);
  }
  if (row.sizes == Sizes::gathered && row.filled == Tensors::per_member) {
    call.outputs = op.tensors.outputs != nullptr ? in_one_piece(call.outputs) : Shapes{{members, op.numel}};
  }
}

// ProcessGroupGloo.cpp, as measured with 2.14.1: the function of Gloo's that runs. An all_gather_into_tensor is an
// all_gather, and a reduce_scatter_tensor an all_reduce of everything, of which each rank then takes its part.
void set_gloo(const Op& op, const OpRow& row, Rank members, DumpCall& call) {
  call.op = std::ranges::find(op_rows, row.gloo, &OpRow::gloo)->name;
  switch (row.sizes) {
    case Sizes::equal:
    case Sizes::exchanged:
      call.inputs = given_to(op);
      call.outputs = works_in_place(op.kind) ? call.inputs : filled_by(op);
      break;
    case Sizes::gathered:
      call.inputs = given_to(op);
      call.outputs = op.tensors.outputs != nullptr || row.root != Root::none ? in_one_piece(filled_by(op))
                                                                             : Shapes{{members, op.numel}};
      break;
    case Sizes::divided:
      call.inputs = row.reduces && op.tensors.inputs != nullptr ? Shapes{shapes_of(op.tensors.inputs).front()}
                                                                : in_one_piece(given_to(op));
      call.outputs = row.reduces ? call.inputs : filled_by(op);
      break;
  }
}

// A list is reduced one tensor after the other.
std::size_t records_of(const Op& op, const OpRow& row, const BackendTraits& backend) {
  const bool is_one_by_one = !backend.records_messages && row.reduces && row.sizes == Sizes::divided;
  return is_one_by_one && op.tensors.inputs != nullptr ? op.tensors.inputs->size() : 1;
}

const Shapes no_list{{0}};
const std::vector<std::string> unknown{"UNKNOWN_SCALAR"};

DumpCall turned(DumpCall call) {
  if (call.op == "scatter") {
    std::swap(call.inputs, call.outputs);
    std::swap(call.input_dtypes, call.output_dtypes);
  }
  return call;
}

}  // namespace

std::vector<DumpCall> recorded_calls(const Op& op, const BackendTraits& backend, Rank members) {
  const OpRow& row = row_of(op.kind);
  DumpCall call;
  call.backend = backend.name;
  if (is_point_to_point(op.kind)) {
    call.source = op.kind == OpKind::send ? op.rank : op.root;
    call.destination = op.kind == OpKind::send ? op.root : op.rank;
  }
  const auto set = backend.records_messages ? set_nccl : set_gloo;
  set(op, row, members, call);
  const std::string dtype(scalar_type_name(op.kind == OpKind::barrier ? Dtype::float32 : op.dtype));
  call.input_dtypes.assign(call.inputs.size(), dtype);
  call.output_dtypes.assign(call.outputs.size(), dtype);
  return std::vector<DumpCall>(records_of(op, row, backend), call);
}

bool is_recorded_otherwise(const DumpCall& called) {
  return !called.is_of_gloo() && (called.op == "gather" || called.op == "scatter");
}

DumpCall as_called(DumpCall recorded) {
  if (!is_recorded_otherwise(recorded)) {
    return recorded;
  }
  if (recorded.outputs == no_list && recorded.output_dtypes == unknown) {
    recorded.outputs.clear();
    recorded.output_dtypes.clear();
  }
  return turned(std::move(recorded));
}

DumpCall as_recorded(DumpCall called) {
  if (!is_recorded_otherwise(called)) {
    return called;
  }
  DumpCall recorded = turned(std::move(called));
  if (recorded.outputs.empty() && !recorded.inputs.empty()) {
    recorded.outputs = no_list;
    recorded.output_dtypes = unknown;
  }
  return recorded;
}

DumpCall batch_marker(std::string_view backend) {
  DumpCall call;
  call.backend = backend;
  call.op = "coalesced";
  return call;
}

DumpCall parse_profiling_name(std::string_view name) {
  DumpCall call;
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    call.backend = name.substr(0, colon);
    name.remove_prefix(colon + 1);
  }
  const std::size_t blank = name.find(' ');
  const std::string_view op = name.substr(0, blank);
  call.op = name;
  if (blank == std::string_view::npos || (op != "send" && op != "recv")) {
    return call;
  }
  const std::string_view ends = name.substr(blank + 1);
  const std::size_t arrow = ends.find(op == "send" ? "->" : "<-");
  Rank own = -1;
  Rank peer = -1;
  if (arrow == std::string_view::npos ||
      std::from_chars(ends.data(), ends.data() + arrow, own).ec != std::errc() ||
      std::from_chars(ends.data() + arrow + 2, ends.data() + ends.size(), peer).ec != std::errc() ||
      own < 0 || peer < 0) {
    return call;
  }
  call.op = op;
  call.source = op == "send" ? own : peer;
  call.destination = op == "send" ? peer : own;
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
