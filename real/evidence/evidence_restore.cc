// EvidenceBuilder's part that restores an Op from a log's values.

#include "real/evidence/evidence_builder.h"

namespace rollcall::real {

ScopeId EvidenceBuilder::restore_scope(const LoggedOp& logged) {
  ScopeId scope = no_scope;
  for (std::size_t i = 0; i < logged.names.size(); ++i) {
    scope = logged.pairings[i].empty() ? scopes_.enter(scope, logged.names[i])
                                       : scopes_.enter_paired(scope, logged.names[i], logged.pairings[i]);
  }
  return scope;
}

Storage* EvidenceBuilder::stand_in(const std::optional<Shape>& shape, const Op& op) {
  return shape ? tensors_.emplace_back(Tensor::meta(*shape, op.dtype, op.device)).storage() : nullptr;
}

const TensorList* EvidenceBuilder::stand_ins(const std::optional<std::vector<Shape>>& shapes, const Op& op) {
  if (!shapes) {
    return nullptr;
  }
  TensorList& list = lists_.emplace_back();
  for (const Shape& shape : *shapes) {
    list.push_back(Tensor::meta(shape, op.dtype, op.device));
  }
  return &list;
}

Op EvidenceBuilder::restore(Rank rank, const LoggedOp& logged) {
  Op op = logged.op;
  const std::vector<GroupId>& known = state_of(rank).groups;
  op.group = op.group < known.size() ? known[op.group] : unknown_group;
  op.scope = restore_scope(logged);
  op.site.file = logged.file.empty() ? nullptr : files_.insert(logged.file).first->c_str();
  op.tensors.input = stand_in(logged.input, op);
  op.tensors.output = stand_in(logged.output, op);
  op.tensors.inputs = stand_ins(logged.inputs, op);
  op.tensors.outputs = stand_ins(logged.outputs, op);
  op.tensors.splits = logged.splits ? &splits_.emplace_back(*logged.splits) : nullptr;
  return op;
}

}  // namespace rollcall::real
