// The engine's part about communicators that nccl makes at their first use (ProcessGroupNCCL.cpp, getNCCLComm), unless
// init_process_group gets a device_id. Making one is a host call, and it blocks:
//
//   a group's       inside each member's first collective or batch_isend_irecv. A collective waits for all members
//                   anyway, so only batches wait here, even for members that they have no message for.
//   of two ranks    inside the first send, recv, isend or irecv between them that is not in a batch.

#include "sim/engine/engine.h"

namespace rollcall::sim {

using check::Channel;
using check::GroupMatcher;
using check::Slot;

bool Engine::has_called(GroupId group, Rank member) const {
  const GroupMatcher* batches = group_calls_.find(group, Channel::first_use);
  return launches_[group]->lane(member).launched > 0 || (batches != nullptr && batches->calls_of(member) > 0);
}

// The running rank is about to make the batch's calls.
void Engine::await_communicators(std::span<const Op> batch) {
  for (const Op& op : batch) {
    if (!run_.groups[op.group].connects_late || meets_nobody(op) || has_called(op.group, op.rank)) {
      continue;
    }
    if (is_odd_on(*run_.matchers[op.group], op)) {
      check_device(op);  // a call that torch refuses does not make a communicator
    }
    if (group_calls_.find(op.group, Channel::first_use) == nullptr) {
      gather_callers(op.group);
    }
    Op first = first_call(op.group, op.rank);
    first.scope = op.scope;
    first.site = op.site;
    comes_to(op.group);
    Slot& slot = group_calls_.enter(first);
    run_.notes->note_late_call(run_.now, first, slot.seq);
    wait_in_channel(first, slot, {});
  }
}

Op Engine::first_call(GroupId group, Rank member) {
  Op op;
  op.kind = OpKind::batch_isend_irecv;
  op.group = group;
  op.rank = member;
  return op;
}

// The group's first batch: members whose first call was a collective count as arrived.
void Engine::gather_callers(GroupId group) {
  group_calls_.matcher(group, Channel::first_use);
  for (Rank member = 0; member < run_.members[group].size(); ++member) {
    if (launches_[group]->lane(member).launched > 0) {
      group_calls_.enter(first_call(group, member));
    }
  }
}

// True if the running rank's collective is its first call on a group whose communicator does not exist.
bool Engine::is_first_use(const Op& op) const {
  return run_.groups[op.group].connects_late && !is_point_to_point(op.kind) && !has_called(op.group, op.rank);
}

// The running rank is about to make its first call on the group, a collective: batches wait for it no longer.
void Engine::tell_batches(const Op& op) {
  if (group_calls_.find(op.group, Channel::first_use) != nullptr) {
    const Op first = first_call(op.group, op.rank);
    run_.notes->note_late_call(run_.now, first, group_calls_.enter(first).seq);
  }
}

// One more member makes its first call on the group. The last one lets the others' hosts go on.
void Engine::comes_to(GroupId group) {
  expects(absent_[group] > 0, "a member comes once");
  if (--absent_[group] == 0) {
    for (const Rank rank : run_.members[group].ranks) {
      wake_host(rank);
    }
  }
}

// The running rank has launched its first collective on the group: its host goes on once all members have come, unless
// this holds up only one of its threads.
void Engine::await_communicator(const Work& work) {
  if (contexts_[static_cast<std::size_t>(run_.scheduler->running())].has_threads) {
    return;
  }
  wait_on_host({.kind = HostWait::Kind::communicator, .work = work});
}

// The running rank has launched a message outside a batch: it continues once its peer has launched one as well.
void Engine::meet_peer(const Work& work) {
  using Meeting = check::MessageMatcher::Meeting;
  check::MessageMatcher& messages = messages_.of(work.group());
  const Meeting meeting = messages.meet(work.message());
  if (meeting == Meeting::before) [[likely]] {
    return;
  }
  if (meeting == Meeting::alone) {
    wait_on_host({.kind = HostWait::Kind::peer, .work = work});
    return;
  }
  const Rank peer =
      run_.members[work.group()].ranks[static_cast<std::size_t>(messages.at(work.message()).op.root)];
  if (HostWait& wait = host_waits_[static_cast<std::size_t>(peer)]; wait.kind == HostWait::Kind::peer) {
    wait.has_met = true;
    wake_host(peer);
  }
}

}  // namespace rollcall::sim
