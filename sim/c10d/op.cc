#include "sim/c10d/op.h"

#include <fmt/core.h>

namespace rollcall {
namespace {

TensorList tensors_of(Storage* one, const TensorList* list) {
  if (list != nullptr) {
    return *list;
  }
  return one != nullptr ? TensorList{Tensor::share(*one)} : TensorList();
}

}  // namespace

TensorList given_tensors(const Op& op) {
  const bool only_writes = works_in_place(op.kind) && op.kind != OpKind::send;
  return only_writes ? TensorList() : tensors_of(op.tensors.input, op.tensors.inputs);
}

TensorList filled_tensors(const Op& op) {
  if (op.kind == OpKind::send) {
    return {};
  }
  return works_in_place(op.kind) ? tensors_of(op.tensors.input, op.tensors.inputs)
                                 : tensors_of(op.tensors.output, op.tensors.outputs);
}

std::string describe(const Op& op) {
  std::string text(to_string(op.kind));
  if (!has_tensor(op.kind)) {
    return text + "()";
  }
  text += fmt::format("(numel={}, {}", op.numel, to_string(op.dtype));
  if (has_reduce_op(op.kind)) {
    text += fmt::format(", {}", to_string(op.reduce));
  }
  if (has_root(op.kind)) {
    text += fmt::format(", root={}", op.root);
  }
  return text + ")";
}

}  // namespace rollcall
