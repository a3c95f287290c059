#include "sim/match/naming.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "sim/base/expects.h"

namespace rollcall::check {
namespace {

// "0-1", "0-1; 2-3".
std::string lists_text(const std::vector<std::vector<Rank>>& lists) {
  std::string text;
  for (const std::vector<Rank>& ranks : lists) {
    text += (text.empty() ? "" : "; ") + to_string(RankSet::of(ranks));
  }
  return text;
}

// Ranks blocked on other keys, or not at all.
std::vector<Rank> possible_setters(const Evidence& evidence, const RankStatus& waiting) {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < evidence.ranks.size(); ++rank) {
    const RankStatus& status = evidence.ranks[rank];
    const bool same_wait = status.waits() && status.channel == Channel::store &&
                           evidence.store_wait(status.seq).keys == evidence.store_wait(waiting.seq).keys;
    if (!same_wait) {
      ranks.push_back(static_cast<Rank>(rank));
    }
  }
  return ranks;
}

// The members of the group being made that have not arrived.
std::vector<Rank> missing_members(const Evidence& evidence, const Slot& slot, const Op& op) {
  std::vector<Rank> ranks;
  std::ranges::copy_if(evidence.rank_lists[static_cast<std::size_t>(op.numel)].front(),
                       std::back_inserter(ranks), [&](Rank rank) { return !slot.has(rank); });
  return ranks;
}

}  // namespace

Channel channel_of(OpKind kind) {
  switch (kind) {
    case OpKind::new_group:
      return Channel::new_group;
    case OpKind::split_group:
      return Channel::split_group;
    case OpKind::destroy_process_group:
      return Channel::destroy;
    case OpKind::batch_isend_irecv:
      return Channel::first_use;
    default:
      return is_about_store(kind) ? Channel::store : Channel::collectives;
  }
}

const GroupMatcher* matcher_of(const Evidence& evidence, const RankStatus& status) {
  return status.channel == Channel::store ? nullptr : evidence.groups[status.group].calls(status.channel);
}

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
  if (op.kind == OpKind::new_group || op.kind == OpKind::split_group) {
    call.ranks = lists_text(evidence.rank_lists[static_cast<std::size_t>(op.numel)]);
  }
  if (is_about_store(op.kind)) {
    call.key = fmt::format("{}", fmt::join(evidence.store_wait(seq).keys, ", "));
  }
  return call;
}

Op waiting_op(const Evidence& evidence, const RankStatus& status) {
  if (status.in_message()) {
    return evidence.groups[status.group].messages->at(status.message).op;
  }
  if (status.channel == Channel::store) {
    return evidence.store_wait(status.seq).op;
  }
  const GroupMatcher& matcher = *matcher_of(evidence, status);
  const Slot* slot = matcher.find(status.seq);
  expects(slot != nullptr, "a rank waits in a slot that is alive");
  return matcher.op_of(*slot, status.group_rank);
}

Call name_waiting_call(const Evidence& evidence, Rank rank) {
  const RankStatus& status = evidence.status_of(rank);
  return name_call(evidence, waiting_op(evidence, status), status.seq);
}

std::vector<Rank> awaited(const Evidence& evidence, const RankStatus& status) {
  if (status.channel == Channel::store) {
    return possible_setters(evidence, status);
  }
  const std::vector<Rank>& members = evidence.groups[status.group].members->ranks;
  if (status.in_message()) {
    if (const Rank peer = waiting_op(evidence, status).root; peer >= 0) {
      return {members[static_cast<std::size_t>(peer)]};
    }
  }
  const Slot* slot = status.in_message() ? nullptr : matcher_of(evidence, status)->find(status.seq);
  if (slot != nullptr && status.channel == Channel::new_group && status.group == world_group &&
      !evidence.new_group_waits_for_all) {
    return missing_members(evidence, *slot, waiting_op(evidence, status));
  }
  std::vector<Rank> ranks;
  for (std::size_t member = 0; member < members.size(); ++member) {
    const auto rank = static_cast<Rank>(member);
    if (slot != nullptr ? !slot->has(rank) : rank != status.group_rank) {
      ranks.push_back(members[member]);
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

std::string other_arguments(const GroupMembers& group, const Op& op) {
  if (is_point_to_point(op.kind)) {
    return op.tag == 0 ? "" : fmt::format("tag {}", op.tag);
  }
  const bool has_known_root = op.root >= 0 && op.root < group.size();
  const std::string root =
      has_known_root ? fmt::format("root {}", group.ranks[static_cast<std::size_t>(op.root)]) : "";
  const std::string reduce(has_reduce_op(op.kind) ? to_string(op.reduce) : "");
  return reduce + (reduce.empty() || root.empty() ? "" : ", ") + root;
}

}  // namespace rollcall::check
