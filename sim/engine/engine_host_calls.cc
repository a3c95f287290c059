// The engine's part about host calls: a rank that makes one parks, and GroupCalls or StoreService say when it
// continues.

#include "sim/base/expects.h"
#include "sim/engine/engine.h"

namespace rollcall::sim {

using check::Channel;
using check::RankStatus;
using check::Slot;

namespace {

// During its lifetime, a rank's status says that it waits in a host call.
class ParkInChannel {
 public:
  ParkInChannel(RankStatus& status, GroupId group, Channel channel, Rank group_rank, std::int64_t seq)
      : status_(status) {
    status.wait_in(group, group_rank, seq);
    status.channel = channel;
  }
  ~ParkInChannel() { status_.channel = Channel::collectives; }
  ParkInChannel(const ParkInChannel&) = delete;
  ParkInChannel& operator=(const ParkInChannel&) = delete;

 private:
  RankStatus& status_;
};

Deadline limit_of(const GroupCall& call) {
  return {.limit = call.timeout.value_or(0), .own = !call.timeout_is_default};
}

}  // namespace

ProcessGroup Engine::manage(GroupCall call) {
  if (refuses_calls()) [[unlikely]] {
    return ProcessGroup::non_member();
  }
  ++ops_;
  switch (check::channel_of(call.op.kind)) {
    case Channel::new_group:
    case Channel::split_group:
      return make_group(std::move(call));
    case Channel::destroy:
      destroy_group(call);
      return ProcessGroup::non_member();
    case Channel::collectives:
    case Channel::first_use:
    case Channel::store:
      break;
  }
  expects(false, "a call about groups makes, splits or ends one");
  return ProcessGroup::non_member();
}

ProcessGroup Engine::make_group(GroupCall call) {
  if (call.is_local) {
    return make_local_group(std::move(call));
  }
  Op op = call.op;
  const bool splits = op.kind == OpKind::split_group;
  op.numel = run_.notes->number_of(std::move(call.ranks), run_.members[op.group]);
  bool waits = true;
  Slot& slot = splits ? group_calls_.enter(op) : group_calls_.enter_creation(op, waits);
  const std::int64_t seq = slot.seq;
  if (!splits) {
    run_.notes->note_late_call(run_.now, op, seq);
  }
  if (waits) {
    wait_in_channel(op, slot, limit_of(call));
  }
  if (refuses_calls()) [[unlikely]] {
    return ProcessGroup::non_member();
  }
  const ProcessGroup made =
      group_calls_.made(op, call.name, seq, [&](const std::string& name, const RankList& ranks) {
        // ncclCommSplit makes the communicator, and new_group the connections of Gloo.
        return add_group(name, ranks, call.timeout.value_or(0), splits || call.is_on_gloo);
      });
  if (made.is_member()) {
    run_.learned(run_.scheduler->running(), made.id());
    group_calls_.count_held(1);
  }
  return made;
}

// A new_group that only the members call.
ProcessGroup Engine::make_local_group(GroupCall call) {
  const RankList members = call.ranks.front().empty() ? run_.members.front().ranks : call.ranks.front();
  const GroupId group =
      group_calls_.local_group(members, call.name, [&](const std::string& name, const RankList& ranks) {
        return add_group(name, ranks, call.timeout.value_or(0), call.is_on_gloo);
      });
  Op op = call.op;
  op.group = group;
  op.rank = run_.members[group].rank_of(run_.scheduler->running());
  op.numel = run_.notes->number_of(std::move(call.ranks), run_.members.front());
  if (run_.rules->traits().exchanges_addresses) {
    wait_in_channel(op, group_calls_.enter(op), limit_of(call));
  }
  group_calls_.count_held(1);
  return ProcessGroup(run_.members[group], op.rank);
}

void Engine::destroy_group(const GroupCall& call) {
  const Op& op = call.op;
  if (run_.rules->traits().destroys_together) {
    synchronize_device();  // ncclCommFinalize waits for what was queued
    wait_in_channel(op, group_calls_.enter(op), limit_of(call));
    any_broken_ = broken_[op.group] = true;
  }
  if (op.group != world_group) {
    group_calls_.count_held(-1);
  }
  run_.notes->destroy(op.group, run_.scheduler->running());
}

void Engine::wait_in_channel(const Op& op, Slot& slot, const Deadline& limit) {
  const Rank rank = run_.scheduler->running();
  slot.waiters.push_back(rank);
  const ParkInChannel wait(run_.status_of(rank), op.group, check::channel_of(op.kind), op.rank, slot.seq);
  deadlines_.limit_next(limit);
  if (run_.recorder) {
    run_.recorder->entered(rank, run_.members[op.group], op, slot.seq, run_.now);
  }
  suspend_rank(nullptr);
}

StoreReply Engine::store(const StoreCall& call) {
  if (refuses_calls()) [[unlikely]] {
    return {};
  }
  ++ops_;
  const Rank rank = run_.scheduler->running();
  StoreRequest request{call};
  store_.ask(rank, request);
  const ParkInChannel wait(run_.status_of(rank), world_group, Channel::store, rank, rank);
  deadlines_.limit_next({.limit = call.timeout.value_or(0), .own = true});
  if (run_.recorder) {
    run_.recorder->entered(rank, run_.members.front(), call, run_.now);
  }
  suspend_rank(nullptr);
  if (request.error) {
    raise(*request.error, call.op.site);
  }
  if (store_.bytes() > run_.options.limits.store_bytes) [[unlikely]] {
    stop(FindingKind::store_size, run_.options.limits.store_bytes);
    throw RankAborted{};
  }
  return request.reply;
}

// True if that made some rank ready at once.
bool Engine::attend_to_hosts() {
  const std::size_t told = interruptions_.size();
  for (auto& [rank, interruption] : group_calls_.advance()) {
    wake_interrupted(rank, std::move(interruption));
  }
  if (!run_.orders_calls) {
    store_.serve_all();
  }
  return interruptions_.size() > told;
}

// The rank's wait was given up, for any reason.
void Engine::leave_channel(Rank rank) {
  if (run_.recorder) {
    run_.recorder->left(rank, run_.now);
  }
  if (run_.status_of(rank).channel == Channel::store) {
    store_.give_up(rank);
  } else {
    group_calls_.give_up(rank);
  }
}

}  // namespace rollcall::sim
