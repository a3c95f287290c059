#include "sim/check/naming.h"

#include <fmt/format.h>

#include "sim/dist/expects.h"

namespace rollcall::check {

const std::string& group_name(const Evidence& evidence, GroupId group) {
  return evidence.groups[group].members->name;
}

Call name_call(const Evidence& evidence, const Op& op, std::int64_t seq) {
  Call call;
  call.op = to_string(op.kind);
  call.group = group_name(evidence, op.group);
  call.seq = seq;
  call.label = evidence.scopes->path(op.scope);
  call.site = to_string(op.site);
  if (has_tensor(op.kind)) {
    call.numel = op.numel;
    call.dtype = to_string(op.dtype);
    call.device = to_string(op.device);
  }
  if (has_reduce_op(op.kind)) {
    call.reduce_op = to_string(op.reduce);
  }
  if (has_root(op.kind) && op.root >= 0) {
    call.root = evidence.groups[op.group].members->ranks[static_cast<std::size_t>(op.root)];
  }
  return call;
}

Call name_member_call(const Evidence& evidence, GroupId group, std::int64_t seq, Rank group_rank) {
  const GroupMatcher& matcher = *evidence.groups[group].matcher;
  const Slot* slot = matcher.find(seq);
  expects(slot != nullptr, "a call is named while its slot is alive");
  return name_call(evidence, matcher.op_of(*slot, group_rank), seq);
}

std::vector<Variant> name_variants(const Evidence& evidence, const Incident& incident) {
  std::vector<Variant> variants;
  for (const OpVariant& variant : incident.variants) {
    variants.push_back({RankSet::of(variant.ranks), name_call(evidence, variant.op, incident.seq)});
  }
  return variants;
}

std::string call_signature(const Call& call) {
  std::string text = call.op;
  if (!call.dtype.empty()) {
    text += fmt::format(" of {} x {}", call.numel, call.dtype);
  }
  if (!call.reduce_op.empty()) {
    text += ", " + call.reduce_op;
  }
  if (call.root >= 0) {
    text += fmt::format(", root {}", call.root);
  }
  return text;
}

}  // namespace rollcall::check
