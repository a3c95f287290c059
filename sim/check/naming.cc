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
  const bool exists = op.root >= 0 && op.root < evidence.groups[op.group].members->size();
  if (has_root(op.kind) && exists) {
    const Rank global = evidence.groups[op.group].members->ranks[static_cast<std::size_t>(op.root)];
    (is_point_to_point(op.kind) ? call.peer : call.root) = global;
  }
  call.tag = op.tag;
  return call;
}

Op waiting_op(const Evidence& evidence, const RankStatus& status) {
  const GroupEvidence& group = evidence.groups[status.group];
  if (status.in_message()) {
    return group.messages->at(status.message).op;
  }
  const Slot* slot = group.matcher->find(status.seq);
  expects(slot != nullptr, "a rank waits in a slot that is alive");
  return group.matcher->op_of(*slot, status.group_rank);
}

Call name_waiting_call(const Evidence& evidence, Rank rank) {
  const RankStatus& status = evidence.ranks[static_cast<std::size_t>(rank)];
  return name_call(evidence, waiting_op(evidence, status), status.seq);
}

std::vector<Rank> awaited(const Evidence& evidence, const RankStatus& status) {
  const GroupEvidence& group = evidence.groups[status.group];
  const Rank peer = status.in_message() ? waiting_op(evidence, status).root : -1;
  const Slot* slot = status.in_message() ? nullptr : group.matcher->find(status.seq);
  std::vector<Rank> ranks;
  for (Rank member = 0; member < group.members->size(); ++member) {
    const bool is_awaited = slot != nullptr ? !slot->has(member)
                            : peer >= 0     ? member == peer
                                            : member != status.group_rank;
    if (is_awaited) {
      ranks.push_back(group.members->ranks[static_cast<std::size_t>(member)]);
    }
  }
  return ranks;
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
  if (call.peer >= 0) {
    text += fmt::format(" {} rank {}", call.op == "send" ? "to" : "from", call.peer);
  }
  return text;
}

}  // namespace rollcall::check
