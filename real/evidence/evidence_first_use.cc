// EvidenceBuilder's part about communicators that nccl makes at their first use, as in the engine
// (sim/engine/engine_first_use.cc): the first batch of a rank waits for a first call of every member of its group, and
// is made when `connect` has been logged for each of its groups.

#include <algorithm>

#include "real/evidence/evidence_builder.h"
#include "sim/c10d/p2p.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::real {

using check::Channel;
using check::RankStatus;

namespace {

Op first_call(GroupId group, Rank member) {
  Op op;
  op.kind = OpKind::batch_isend_irecv;
  op.group = group;
  op.rank = member;
  return op;
}

}  // namespace

// `batch`: its records. The batch waits for its groups on which the rank has not made a call yet.
void EvidenceBuilder::await_communicators(Rank rank, const std::vector<std::size_t>& batch) {
  RankState& state = state_of(rank);
  const std::vector<Record>& records = log_.ranks[static_cast<std::size_t>(rank)].records;
  for (const std::size_t index : batch) {
    const Op op = restore(rank, records[index].op);
    if (!group_evidence_[op.group].connects_late ||
        has_called_[op.group][static_cast<std::size_t>(op.rank)] ||
        state.left_out[static_cast<std::size_t>(records[index].call)]) {
      continue;
    }
    if (group_evidence_[op.group].calls(Channel::first_use) == nullptr) {
      for (Rank member = 0; member < groups_[op.group].size(); ++member) {
        if (has_called_[op.group][static_cast<std::size_t>(member)]) {
          come_first(op.group, member, no_scope, {});
        }
      }
    }
    has_called_[op.group][static_cast<std::size_t>(op.rank)] = true;
    come_first(op.group, op.rank, op.scope, op.site);
    state.unconnected.push_back(op.group);
  }
}

void EvidenceBuilder::come_first(GroupId group, Rank member, ScopeId scope, Site site) {
  Call call;
  call.op = first_call(group, member);
  call.op.scope = scope;
  call.op.site = site;
  check::GroupMatcher& calls = matcher_of(group, Channel::first_use);
  call.seq = calls.arrive(call.op).seq;
}

// For a collective: if it is the member's first call and batches wait for the members, it has arrived.
void EvidenceBuilder::tell_batches(const Op& op) {
  if (check::channel_of(op.kind) != Channel::collectives || !group_evidence_[op.group].connects_late) {
    return;
  }
  auto called = has_called_[op.group].begin() + op.rank;
  if (!*called && group_evidence_[op.group].calls(Channel::first_use) != nullptr) {
    come_first(op.group, op.rank, no_scope, {});
  }
  *called = true;
}

// One more group of the rank's batch has its communicator, or the batch has failed. The batch is made after the last
// one.
void EvidenceBuilder::connect(Rank rank) {
  RankState& state = state_of(rank);
  state.unconnected.erase(state.unconnected.begin());
  if (state.unconnected.empty()) {
    const std::size_t index = std::exchange(state.batch, none);
    issue(rank, index);
  }
}

void EvidenceBuilder::wait_to_connect(Rank rank, GroupId group) {
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.wait_in(group, groups_[group].rank_of(rank), 0);
  status.channel = Channel::first_use;
}

}  // namespace rollcall::real
