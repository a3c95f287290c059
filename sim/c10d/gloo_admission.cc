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

// ProcessGroupGloo.cpp has a case for these dtypes only, whatever the operation (GENERATE_ALL_TYPES).
bool has_scalar_type(Dtype dtype, const TorchTraits& torch) {
  const bool is_small = dtype == Dtype::bfloat16 || dtype == Dtype::boolean;
  return is_small ? torch.gloo_small_types : dtype != Dtype::int16 && !is_complex(dtype);
}

bool is_supported(const Op& op, const TorchTraits& torch) {
  return torch.release >= row_of(op.kind).gloo_since;
}

bool has_reduction(const Op& op, const TorchTraits& torch) {
  if (!has_reduce_op(op.kind)) {
    return true;
  }
  if (op.reduce == ReduceOp::avg) {
    return torch.gloo_averages && is_floating(op.dtype);
  }
  return op.reduce != ReduceOp::premul_sum && supports(op.reduce, op.dtype);
}

bool is_meta(const Op& op) { return op.device.type == DeviceType::meta && has_tensor(op.kind); }

}  // namespace

bool gloo_refuses(const Op& op, const TorchTraits& torch) {
  return (is_meta(op) && !torch.ignores_meta_tensors) || !is_supported(op, torch);
}

bool gloo_raises_late(const Op& op, const TorchTraits& torch) {
  if (gloo_refuses(op, torch) || is_meta(op) || !has_tensor(op.kind) || is_point_to_point(op.kind)) {
    return false;
  }
  return !has_scalar_type(op.dtype, torch) || !has_reduction(op, torch);
}

Error gloo_refusal(const Op& op, const TorchTraits& torch) {
  if (is_meta(op)) {
    return {torch.meta_tensor_refused.type,
            fmt::format(fmt::runtime(torch.meta_tensor_refused.text), c10d_name(op.kind))};
  }
  if (!is_supported(op, torch)) {
    return RuntimeError(fmt::format(fmt::runtime(row_of(op.kind).gloo_refusal), torch.gloo_base_class));
  }
  if (!has_scalar_type(op.dtype, torch)) {
    return RuntimeError("Invalid scalar type");
  }
  if (op.reduce == ReduceOp::avg && torch.gloo_averages) {
    return RuntimeError(fmt::format("result type Float can't be cast to the desired output type {}",
                                    op.dtype == Dtype::int64 ? "Long" : scalar_type_name(op.dtype)));
  }
  if (op.reduce == ReduceOp::avg || op.reduce == ReduceOp::premul_sum) {
    return RuntimeError(fmt::format("Cannot use ReduceOp.{} with Gloo", to_string(op.reduce)));
  }
  return RuntimeError(fmt::format("Cannot use ReduceOp.{} with non-integral dtype", to_string(op.reduce)));
}

// An even exchange is split by bytes: if the elements do not divide evenly among the ranks, one is cut in two.
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
