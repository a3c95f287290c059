#include "sim/c10d/gloo_admission.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/c10d/apply.h"

namespace rollcall {
namespace {

// The c10d operator behind a torch.distributed function, as dispatcher errors name it.
std::string c10d_name(OpKind kind) {
  std::string name(to_string(kind));
  std::erase(name, '_');
  return name + "_";
}

// ProcessGroupGloo.cpp has a case for these dtypes only, whatever the operation.
bool has_scalar_type(Dtype dtype) {
  return dtype != Dtype::bfloat16 && dtype != Dtype::boolean && dtype != Dtype::int16 && !is_complex(dtype);
}

bool is_meta(const Op& op) { return op.device.type == DeviceType::meta && has_tensor(op.kind); }

}  // namespace

bool gloo_refuses(const Op& op) { return is_meta(op) || !row_of(op.kind).gloo_refusal.empty(); }

bool gloo_raises_late(const Op& op) {
  if (gloo_refuses(op) || !has_tensor(op.kind) || is_point_to_point(op.kind)) {
    return false;
  }
  const bool is_nccls = op.reduce == ReduceOp::avg || op.reduce == ReduceOp::premul_sum;
  const bool reduces = !has_reduce_op(op.kind) || (!is_nccls && supports(op.reduce, op.dtype));
  return !has_scalar_type(op.dtype) || !reduces;
}

Error gloo_refusal(const Op& op) {
  if (is_meta(op)) {
    return NotImplementedError(fmt::format(
        "Could not run 'c10d::{}' with arguments from the 'AutogradMeta' backend.", c10d_name(op.kind)));
  }
  if (const std::string_view text = row_of(op.kind).gloo_refusal; !text.empty()) {
    return RuntimeError(std::string(text));
  }
  if (!has_scalar_type(op.dtype)) {
    return RuntimeError("Invalid scalar type");
  }
  if (op.reduce == ReduceOp::avg || op.reduce == ReduceOp::premul_sum) {
    return RuntimeError(fmt::format("Cannot use ReduceOp.{} with Gloo", to_string(op.reduce)));
  }
  return RuntimeError(fmt::format("Cannot use ReduceOp.{} with non-integral dtype", to_string(op.reduce)));
}

// An even exchange is cut by bytes: elements that do not divide by the ranks are cut in two.
std::string gloo_enforce_text(const Op& op, Rank group_size) {
  if (op.kind != OpKind::all_to_all_single) {
    return {};
  }
  const auto members = static_cast<std::size_t>(group_size);
  if (op.tensors.splits != nullptr) {
    const auto self = static_cast<std::size_t>(op.rank);
    const bool own_part_fits =
        sent_parts(op, op.tensors, members)[self] == expected_parts(op, op.tensors, members)[self];
    return own_part_fits ? ""
                         : "[enforce fail at ./gloo/alltoallv.cc:138] inLengthPerRank[myRank] == "
                           "outLengthPerRank[myRank]. ";
  }
  if (op.tensors.input->bytes() % group_size != 0) {
    return "[enforce fail at ./gloo/alltoall.cc:29] in->size % context->size == 0. ";
  }
  if (op.tensors.input->bytes() != op.tensors.output->bytes()) {
    return "[enforce fail at ./gloo/alltoall.cc:30] in->size == out->size. ";
  }
  return {};
}

}  // namespace rollcall
