// The engine's part about GPUs: on NCCL a rank's host only queues calls, and its GPU runs them. A call is
// not matched before the GPU has reached it, so everything behind the matcher is the same as for Gloo.

#include <algorithm>

#include "sim/base/expects.h"
#include "sim/engine/engine.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::GroupMatcher;
using check::RankStatus;
using check::Slot;

// A CUDA driver takes about a thousand launches before the host has to wait for the GPU. The queues of all
// ranks together are bounded as well, or a million ranks that run ahead would need a hundred gigabytes.
constexpr std::size_t launches_max = 1024;
constexpr std::size_t launches_of_all_ranks = std::size_t{1} << 18;
constexpr std::size_t launches_min = 8;

}  // namespace

void Engine::make_devices() {
  if (run_.queues_calls) {
    const std::size_t ranks = run_.ranks();
    devices_.reserve(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      devices_.emplace_back(run_.options.comm_slots);
    }
    host_waits_.resize(ranks);
    launch_limit_ = std::clamp(launches_of_all_ranks / ranks, launches_min, launches_max);
  }
}

// The GPU of the running rank.
DeviceQueue& Engine::running_device() {
  return devices_[static_cast<std::size_t>(run_.scheduler->running())];
}

// The host stops while too much is queued.
void Engine::await_room() {
  if (running_device().backlog() >= launch_limit_) [[unlikely]] {
    wait_on_host({.kind = HostWait::Kind::room});
  }
}

Work Engine::launch(const Op& op, bool is_first) {
  const Rank rank = run_.scheduler->running();
  DeviceQueue& device = devices_[static_cast<std::size_t>(rank)];
  if (device.backlog() >= launch_limit_ && !is_in_batch_) [[unlikely]] {
    await_room();
  }
  if (is_point_to_point(op.kind)) [[unlikely]] {
    return launch_message(op);
  }
  run_.matchers[op.group]->use_device(op.rank, op.device);
  const std::int64_t seq = device.launch(*launches_[op.group], op);
  if (device.has_next()) {
    pump(rank);
  }
  if (is_first) [[unlikely]] {
    comes_to(op.group);  // before the host waits, which may end it
  }
  const Work work(op.group, op.rank, seq);
  if (run_.options.debug == DebugLevel::detail) [[unlikely]] {
    // DETAIL compares with the others first, and the host blocks in it.
    wait_on_host({.kind = HostWait::Kind::collective, .work = work});
  }
  return work;
}

Work Engine::launch_message(const Op& op) {
  const check::MessageId id = messages_.plan(op);
  const check::MessageMatcher& messages = messages_.of(op.group);
  const std::int64_t seq = messages.at(id).seq;
  const bool is_in_pair = run_.groups[op.group].connects_late && !messages.at(id).in_batch;
  running_device().launch_message(op, seq, id,
                                  is_in_pair ? std::nullopt : std::optional(messages.at(id).batch));
  pump(run_.scheduler->running());
  const Work work(op.group, op.rank, seq, id);
  if (is_in_pair) {
    meet_peer(work);
  }
  return work;
}

// work.wait(): the current stream waits, and the host continues. For a barrier, the host waits as well
// (ProcessGroupNCCL.cpp, WorkNCCL::synchronizeInternal).
void Engine::wait_on_device(const Work& work) {
  DeviceQueue& device = running_device();
  const Stream stream = contexts_[static_cast<std::size_t>(run_.scheduler->running())].stream;
  if (work.is_point_to_point()) {
    device.await_message(stream, work.group(), work.rank(), work.seq(), work.message());
    return;
  }
  if (launches_[work.group()]->kind_of(work.rank(), work.seq()) == OpKind::barrier) {
    wait_on_host({.kind = HostWait::Kind::collective, .work = work});
  } else {
    device.await_collective(stream, work.group(), work.seq());
  }
}

bool Engine::has_finished_message_on_device(const Work& work) const {
  const Rank rank = run_.members[work.group()].ranks[static_cast<std::size_t>(work.rank())];
  return devices_[static_cast<std::size_t>(rank)].has_finished_message(work.group(), work.seq());
}

// ---- The host's waits ----

void Engine::wait_on_host(const HostWait& wait) {
  const Rank rank = run_.scheduler->running();
  const auto index = static_cast<std::size_t>(rank);
  if (is_over(rank, wait)) {
    return;
  }
  host_waits_[index] = wait;
  run_.status[index].state = RankStatus::State::waiting;
  suspend_rank(nullptr);
}

bool Engine::is_over(Rank rank, const HostWait& wait) const {
  const DeviceQueue& device = devices_[static_cast<std::size_t>(rank)];
  switch (wait.kind) {
    case HostWait::Kind::none:
      return true;
    case HostWait::Kind::room:
      return device.backlog() <= launch_limit_ / 2;
    case HostWait::Kind::collective:
      return has_finished_on_device(wait.work);
    case HostWait::Kind::communicator:
      return absent_[wait.work.group()] == 0;
    case HostWait::Kind::peer:
      return wait.has_met;
    case HostWait::Kind::event:
      return device.has_passed(wait.event);
    case HostWait::Kind::tensor:
      return wait.tensor->pending == 0;
    case HostWait::Kind::device:
      return device.is_idle();
    case HostWait::Kind::streams:
      return device.streams_are_idle();
    case HostWait::Kind::any:
      return std::ranges::any_of(wait.works,
                                 [this](const Work& work) { return has_finished_on_device(work); });
  }
  return true;
}

void Engine::resolve_host_waits() {
  for (std::size_t rank = 0; rank < host_waits_.size(); ++rank) {
    resolve_host_wait(static_cast<Rank>(rank));
  }
}

// If the rank's host waits for its GPU, sets its status to the call that the wait ultimately depends on.
void Engine::resolve_host_wait(Rank rank) {
  const HostWait& wait = host_waits_[static_cast<std::size_t>(rank)];
  if (wait.kind == HostWait::Kind::none) {
    return;
  }
  const DeviceQueue& device = devices_[static_cast<std::size_t>(rank)];
  std::optional<DeviceQueue::Block> block;
  if (wait.kind == HostWait::Kind::peer) {
    block = {wait.work.group(), wait.work.rank(), wait.work.seq(), wait.work.message()};
  } else if (wait.kind == HostWait::Kind::collective || wait.kind == HostWait::Kind::communicator) {
    block = device.blocking(wait.work.group(), wait.work.seq());
  } else if (wait.kind == HostWait::Kind::event) {
    block = device.blocking(wait.event);
  } else if (wait.kind == HostWait::Kind::any && !wait.works.front().is_point_to_point()) {
    block = device.blocking(wait.works.front().group(), wait.works.front().seq());
  } else {
    block = device.blocking();
  }
  RankStatus& status = run_.status_of(rank);
  status.group = block ? block->group : world_group;
  status.group_rank = block ? block->group_rank : -1;
  status.seq = block ? block->seq : -1;
  status.message = block ? block->message : check::no_message;
}

rollcall::Event Engine::record_event(Stream stream) { return running_device().record(stream); }

void Engine::stream_wait(Stream stream, const rollcall::Event& event) {
  if (!running_device().has_passed(event)) {
    running_device().await_event(stream, event);
  }
}

void Engine::synchronize(const rollcall::Event& event) {
  if (aborting_) {
    return end_call();
  }
  wait_on_host({.kind = HostWait::Kind::event, .event = event});
}

void Engine::synchronize_device() {
  if (aborting_) {
    return end_call();
  }
  wait_on_host({.kind = HostWait::Kind::device});
}

void Engine::settle(Storage& storage) {
  if (!aborting_) {
    wait_on_host({.kind = HostWait::Kind::tensor, .tensor = &storage});
  }
}

void Engine::launch_kernel(Stream stream, const Kernel& kernel) {
  if (aborting_) {
    return end_call();
  }
  if (kernel.duration > 0) {
    await_room();
    const Rank rank = run_.scheduler->running();
    Kernel own = kernel;
    own.duration = compute_times_.next(rank, kernel.duration);
    running_device().launch_kernel(stream, own);
    pump(rank);
  }
}

// The program has returned. The process ends once its streams are done: calls that it asked to wait for must
// complete, calls that it never waited for need not.
void Engine::drain(Rank rank) {
  expects(rank == run_.scheduler->running(), "a rank drains its own GPU");
  if (run_.queues_calls && !aborting_) {
    wait_on_host({.kind = HostWait::Kind::streams});
  }
}

// ---- The GPU's progress ----

// Advances the GPU of `rank` as far as possible.
void Engine::pump(Rank rank) {
  using Kind = DeviceQueue::Action::Kind;
  const auto index = static_cast<std::size_t>(rank);
  DeviceQueue& device = devices_[index];
  for (DeviceQueue::Action action = device.next(); action.kind != Kind::none; action = device.next()) {
    switch (action.kind) {
      case Kind::none:
        break;
      case Kind::start:
        start(*action.table, action.group_rank);
        break;
      case Kind::post:
        messages_.post(action.group, action.message);
        break;
      case Kind::run_kernel:
        run_kernel(rank, action);
        break;
    }
  }
  wake_host(rank);
}

void Engine::run_kernel(Rank rank, const DeviceQueue::Action& action) {
  const Kernel& kernel = action.kernel;
  const RunEvent end{.kind = RunEvent::Kind::kernel, .rank = rank, .seq = action.stream.id};
  if (contention_) [[unlikely]] {
    contention_->start_work(end.key(), run_.now, kernel.duration);
  } else if (run_.recorder) {
    run_.recorder->ran(rank, action.stream, kernel, run_.now, run_.now + kernel.duration);
  }
  run_.events.add(run_.now + kernel.duration, end);
}

// The rank's GPU has advanced: the host's wait may be over.
void Engine::wake_waiting_host(Rank rank) {
  HostWait& wait = host_waits_[static_cast<std::size_t>(rank)];
  if (is_over(rank, wait)) {
    wait.kind = HostWait::Kind::none;
    wake(rank);
  }
}

// The GPU has reached a collective, the front of its lane, which now enters its slot. Returns the slot if members with
// the same call may simply follow (GroupMatcher::arrive_like); null otherwise.
[[gnu::noinline]] Slot* Engine::start(LaunchTable& table, Rank member) {
  GroupMatcher& matcher = *run_.matchers[table.group()];
  const std::int64_t seq = table.lane(member).finished;
  const LaunchTable::Place& place = table.front(member);
  Slot& slot = place.is_own ? matcher.arrive(table.op_of(member, seq))
                            : matcher.arrive_alike(table.call(seq), member, place.input);
  expects(slot.seq == seq, "calls arrive in the order in which they were launched");
  if (place.is_own ? table.op_of(member, seq).shadow : table.call(seq).shadow) [[unlikely]] {
    joins_.came(run_.members[table.group()].ranks[static_cast<std::size_t>(member)], run_.now);
  }
  if (slot.phase == Slot::Phase::full) {
    full_.push_back({table.group(), slot.seq});
  }
  if (slot.differs || run_.recorder || run_.notes->has_given_up()) [[unlikely]] {
    started(table.op_of(member, seq), slot);
    return nullptr;
  }
  return slot.like == &table.call(seq) && !table.call(seq).shadow ? &slot : nullptr;
}

// The work at the start of a collective that only some calls, or only some runs, need.
void Engine::started(const Op& op, Slot& slot) {
  if (slot.differs) {
    run_.notes->incidents.suspect(run_.now, op.group, slot.seq);
  }
  run_.notes->note_late_call(run_.now, op, slot.seq);
  if (run_.recorder) {
    run_.recorder->arrived(slot, op.rank, run_.matchers[op.group]->size(), run_.now);
  }
}

// The members that have completed the slot continue. In a row of launches usually all do, each to the next row:
// there the first member opens a slot, and the others follow it.
void Engine::finish_on_devices(GroupId group, const Slot& slot) {
  if (!slot.fates.empty()) [[unlikely]] {
    finish_unequally(group, slot);
    return;
  }
  LaunchTable& table = *launches_[group];
  GroupMatcher& matcher = *run_.matchers[group];
  const RankList& ranks = run_.members[group].ranks;
  Slot* next_slot = nullptr;
  for (Rank member = 0; member < matcher.size(); ++member) {
    const Rank rank = ranks[static_cast<std::size_t>(member)];
    DeviceQueue& device = devices_[static_cast<std::size_t>(rank)];
    if (const LaunchTable::Place* next = device.advance(table, member)) [[likely]] {
      if (next_slot == nullptr || next_slot->differs || next->is_own) [[unlikely]] {
        next_slot = start(table, member);
      } else if (matcher.arrive_like(*next_slot, member, next->input)) {
        full_.push_back({group, next_slot->seq});
      }
    }
    if (device.has_next()) {
      pump(rank);
    } else {
      wake_host(rank);
    }
  }
}

// The same if the members have different fates.
void Engine::finish_unequally(GroupId group, const Slot& slot) {
  LaunchTable& table = *launches_[group];
  const RankList& ranks = run_.members[group].ranks;
  for (Rank member = 0; member < run_.members[group].size(); ++member) {
    const Fate fate = slot.fates[static_cast<std::size_t>(member)];
    if (fate == Fate::hangs) {
      continue;
    }
    const Rank rank = ranks[static_cast<std::size_t>(member)];
    DeviceQueue& device = devices_[static_cast<std::size_t>(rank)];
    if (fate != Fate::completes) {
      device.finish_collective(table, member);
      // The host gets the error of its GPU when it waits.
      interrupt_rank(rank, {fate == Fate::crashes, slot.failures[static_cast<std::size_t>(member)]});
      continue;
    }
    if (device.advance(table, member) != nullptr) {
      start(table, member);
    }
    pump(rank);
  }
}

// The kernels of a rank that has died end with it.
void Engine::finish_kernel(Rank rank, Stream stream) {
  if (run_.status_of(rank).state == RankStatus::State::crashed) [[unlikely]] {
    return;
  }
  devices_[static_cast<std::size_t>(rank)].finish_kernel(stream);
  pump(rank);
}

}  // namespace rollcall::sim
