// The engine's part that every call of every rank passes through: issuing, waiting, and ending a wait.

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/engine/engine.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::GroupMatcher;
using check::Slot;

// The error that a group's members see once one of them has given up on it.
constexpr const char* closed_pairs = "Application timeout caused pair closure";

}  // namespace

// The hot path: every call of every rank. Rare cases are kept out of line, so that frames stay small
// and a rank touches few cache lines.
Work Engine::issue(const Op& op) {
  if (meets_nobody(op)) [[unlikely]] {
    return issue_nowhere(op);
  }
  if (goes_elsewhere(op)) [[unlikely]] {
    return issue_elsewhere(op);
  }
  return Work(op.group, op.rank, arrive(op).seq);
}

// A blocking call looks up its slot only once.
void Engine::call(const Op& op) {
  if (meets_nobody(op) || goes_elsewhere(op)) [[unlikely]] {
    if (is_ignored(op, *run_.torch)) {
      return;
    }
    return Backend::call(op);
  }
  Slot& slot = arrive(op);
  if (slot.raises) [[unlikely]] {
    has_its_fate(op.rank, slot);  // this rank may be the one that raises
  }
  block(op.group, op.rank, slot);
}

// Enters the call into its slot.
inline Slot& Engine::arrive(const Op& op) {
  ++ops_;
  GroupMatcher& matcher = *run_.matchers[op.group];
  const bool is_odd = is_odd_on(matcher, op);
  if (is_odd) [[unlikely]] {
    check_device(op);
  }
  Slot& slot = matcher.arrive(op);
  if (slot.phase == Slot::Phase::full) {
    full_.push_back({op.group, slot.seq});
  }
  if (messages_.causes() != nullptr) [[unlikely]] {
    messages_.causes()->call(run_.scheduler->running(), op, slot.seq);
  }
  if (op.async_op || slot.differs || watches_issues_ || is_odd) [[unlikely]] {
    issued(op, slot);
  }
  return slot;
}

// A call that the rank's GPU makes, or a message.
Work Engine::issue_elsewhere(const Op& op) {
  ++ops_;
  GroupMatcher& matcher = *run_.matchers[op.group];
  if (is_odd_on(matcher, op)) [[unlikely]] {  // true for a rank's first collective
    check_device(op);
    if (is_first_use(op)) {
      tell_batches(op);
      const Work work = launch(op, true);
      await_communicator(work);
      return work;
    }
  }
  return run_.queues_calls ? launch(op) : post(op);
}

// Ends a call of a rank that is to unwind. In a destructor that communicates while its rank is already
// unwinding, the call does nothing: a second exception would end the process.
void Engine::end_call() {
  if (std::uncaught_exceptions() == 0) {
    throw RankAborted{};
  }
}

// A rank that never waits could fill any memory with calls that no other rank has made.
void Engine::check_pending(GroupId group) {
  constexpr std::int64_t base_cost = 32;  // what a slot takes besides its members, in members
  const GroupMatcher& matcher = *run_.matchers[group];
  const std::int64_t pending = matcher.end() - matcher.first_live();
  if (pending * (matcher.size() + base_cost) > run_.options.limits.pending_arrivals) [[unlikely]] {
    stop(FindingKind::pending_calls, pending);
    throw RankAborted{};
  }
}

// A call of a rank that is unwinding, or on a group whose connections are closed: it meets no other call. A
// collective fails in the thread that runs it, so the rank gets the error when it waits.
Work Engine::issue_nowhere(const Op& op) {
  if (is_ignored(op, *run_.torch)) {
    return {};
  }
  if (aborting_) {
    end_call();
    return {};
  }
  run_.notes->note_late_call(run_.now, op, next_number(op));
  if (run_.queues_calls) {  // its communicator was ended by the watchdog, or with its group
    throw Error("torch.distributed.DistBackendError",
                fmt::format("NCCL communicator was aborted on rank {}.", op.rank));
  }
  if (is_point_to_point(op.kind)) {
    throw RuntimeError(closed_pairs);
  }
  return Work(op.group, op.rank, Work::no_slot);
}

// True if calls do nothing because the running rank is already unwinding. Otherwise ends a rank that is to unwind.
bool Engine::refuses_calls() const {
  if (aborting_) {
    end_call();
  }
  return aborting_;
}

// The work after matching that only some calls, or only some runs, need.
void Engine::issued(const Op& op, Slot& slot) {
  // Lists whose parts differ in size are refused by some backends and taken by others, which then complete the call as
  // any other.
  const bool is_refused =
      op.malformed && (!op.uneven || run_.rules->raises_late(op, run_.matchers[op.group]->size()));
  const bool raises = is_refused || !admission_.admits(op);
  slot.raises = slot.raises || raises;
  if (slot.differs) {
    run_.notes->incidents.suspect(run_.now, op.group, slot.seq);
  }
  if (op.async_op) {
    check_pending(op.group);
    if (watches_handles()) {
      handles_.give(run_.scheduler->running(), op, Work(op.group, op.rank, slot.seq));
    }
  }
  if (op.async_op || raises) {
    retain(op, slot);  // the caller may drop its tensors before the others have arrived
  }
  run_.notes->note_late_call(run_.now, op, slot.seq);
  if (run_.recorder) {
    run_.recorder->arrived(slot, op.rank, run_.matchers[op.group]->size(), run_.now);
  }
  if (run_.options.debug == DebugLevel::detail && op.async_op) {
    wait(Work(op.group, op.rank,
              slot.seq));  // DETAIL compares with the others first, and the host blocks in it
  }
}

// The number that the next call of the running rank gets.
std::int64_t Engine::next_number(const Op& op) {
  return run_.queues_calls ? launches_[op.group]->lane(op.rank).launched
                           : run_.matchers[op.group]->calls_of(op.rank);
}

// An asynchronous caller may drop its tensors before the call completes.
void Engine::retain(const Op& op, Slot& slot) const {
  if (op.tensors.input != nullptr) {
    slot.retained.push_back(Tensor::share(*op.tensors.input));
  }
  if (op.tensors.output != nullptr) {
    slot.retained.push_back(Tensor::share(*op.tensors.output));
  }
  const auto keep = [&slot](const TensorList*& list) {
    if (list != nullptr) {
      slot.retained_lists.push_back(std::make_unique<TensorList>(*list));
      list = slot.retained_lists.back().get();
    }
  };
  if (!slot.ops.empty()) {
    OpTensors& tensors = slot.ops[static_cast<std::size_t>(op.rank)].tensors;
    keep(tensors.inputs);
    keep(tensors.outputs);
    if (tensors.splits != nullptr) {
      slot.retained_splits.push_back(std::make_unique<SplitSizes>(*tensors.splits));
      tensors.splits = slot.retained_splits.back().get();
    }
  }
}

// A parked rank's next turn touches these frames first, so all rare cases are elsewhere.
void Engine::wait(const Work& work) {
  if (aborting_ || run_.queues_calls || work.is_point_to_point() || run_.options.check_leaks) [[unlikely]] {
    return wait_otherwise(work);
  }
  wait_collective(work);
}

inline void Engine::wait_collective(const Work& work) {
  Slot* slot = run_.matchers[work.group()]->find(work.seq());
  if (slot == nullptr || slot->phase == Slot::Phase::done) {
    if (work.seq() == Work::no_slot) [[unlikely]] {
      interrupt_closed();
    }
    return;
  }
  if (slot->phase == Slot::Phase::irregular || slot->raises || slot->lets_some_through) [[unlikely]] {
    if (has_its_fate(work.rank(), *slot)) {
      return;
    }
  }
  block(work.group(), work.rank(), *slot);
}

// All waits except those for a collective on a backend whose calls block.
void Engine::wait_otherwise(const Work& work) {
  if (aborting_) [[unlikely]] {
    return end_call();
  }
  if (!run_.queues_calls) {
    Handles::Handle* handle = handles_.find(work);
    if (handle != nullptr && handle->was_waited_for && work.is_point_to_point()) {
      observe(handle->observed(Observation::Kind::waited_again));
    }
    block_in(work);
    if (handle != nullptr) {
      handle->waited_for();
    }
    return;
  }
  if (!has_finished_on_device(work)) {
    wait_on_device(work);
  }
}

// True if the call completed for the waiting member of an irregular slot, or of one in which others are missing. Throws
// if the call failed or raises. False if it hangs.
bool Engine::has_its_fate(Rank member, const Slot& slot) const {
  if (slot.is_through(member)) {
    return true;
  }
  if (slot.phase == Slot::Phase::irregular) {
    const auto at = static_cast<std::size_t>(member);
    switch (slot.fates[at]) {
      case Fate::completes:
        return true;
      case Fate::fails:
      case Fate::crashes:
        interrupt({slot.fates[at] == Fate::crashes, slot.failures[at]});
      case Fate::hangs:
        break;
    }
  }
  if (slot.raises && raises_late(member, slot)) {
    const GroupMatcher& matcher = *run_.matchers[slot.reference.group];
    interrupt({false, run_.rules->refusal(matcher.op_of(slot, member), matcher.size()).what()});
  }
  return false;
}

void Engine::interrupt_closed() { interrupt({false, closed_pairs}); }

// True if the backend cannot run this call and says so without waiting for the others. DETAIL waits for
// them first.
bool Engine::raises_late(Rank member, const Slot& slot) const {
  const GroupMatcher& matcher = *run_.matchers[slot.reference.group];
  return run_.options.debug != DebugLevel::detail &&
         run_.rules->raises_late(matcher.op_of(slot, member), matcher.size());
}

// The running rank's status from now on: it waits in the slot.
inline void Engine::begin_wait(GroupId group, Rank member, Slot& slot) {
  const Rank rank = run_.scheduler->running();
  run_.status_of(rank).wait_in(group, member, slot.seq);
  slot.waiters.push_back(rank);
}

inline void Engine::block(GroupId group, Rank member, Slot& slot) {
  if (messages_.causes() != nullptr) [[unlikely]] {
    return block_watched(group, member, slot);
  }
  begin_wait(group, member, slot);
  suspend_rank(slot.tensors[static_cast<std::size_t>(member)]);
}

// block() in a run whose causes are noted. The slot may be gone when the wait is over.
void Engine::block_watched(GroupId group, Rank member, Slot& slot) {
  const std::int64_t seq = slot.seq;
  const bool gets_result =
      row_of(slot.reference.kind).root != Root::destination || slot.reference.root == member;
  begin_wait(group, member, slot);
  suspend_rank(slot.tensors[static_cast<std::size_t>(member)]);
  messages_.causes()->waited_for_call(run_.scheduler->running(), {group, seq}, gets_result);
}

// Parks the running rank, whose status says what it waits for. Returns when the wait has completed; throws if
// it ended otherwise.
void Engine::suspend_rank(const void* hint) {
  if (!deadlines_.none()) [[unlikely]] {
    set_deadline(run_.scheduler->running());
  }
  run_.scheduler->park(hint);
  if (aborting_ || !interruptions_.empty()) [[unlikely]] {
    take_interruption();
  }
  die_if_due(run_.scheduler->running());
}

void Engine::set_deadline(Rank rank) {
  if (run_.queues_calls) {
    resolve_host_wait(rank);
  }
  deadlines_.begin(rank);
}

// Throws if the running rank was woken for any reason other than the end of its wait.
void Engine::take_interruption() {
  if (aborting_) {
    return end_call();
  }
  const auto found = interruptions_.find(run_.scheduler->running());
  if (found != interruptions_.end()) {
    const Interruption interruption = std::move(found->second);
    interruptions_.erase(found);
    interrupt(interruption);
  }
}

void Engine::interrupt(const Interruption& interruption) {
  if (interruption.crash) {
    throw ProcessKilled{interruption.signal, interruption.text};
  }
  throw RuntimeError(interruption.type, interruption.text);
}

bool Engine::is_completed(const Work& work) {
  if (run_.queues_calls) {
    return has_finished_on_device(work);
  }
  const bool is_over = has_completed(work);
  run_.learned(run_.scheduler->running(), is_over);
  if (Handles::Handle* handle = is_over && watches_handles() ? handles_.find(work) : nullptr) {
    handle->is_done = true;
  }
  return is_over;
}

bool Engine::has_completed(const Work& work) {
  if (work.is_point_to_point()) {
    const check::MessageMatcher& messages = messages_.of(work.group());
    return !messages.is_current(work.message(), work.rank(), work.seq()) ||
           messages.at(work.message()).phase == check::Message::Phase::done;
  }
  const Slot* slot = run_.matchers[work.group()]->find(work.seq());
  if (slot == nullptr) {
    return true;
  }
  return slot->phase == Slot::Phase::done || slot->is_through(work.rank()) ||
         (slot->raises && raises_late(work.rank(), *slot)) ||
         (slot->phase == Slot::Phase::irregular &&
          slot->fates[static_cast<std::size_t>(work.rank())] == Fate::completes);
}

// A message whose other end came only now may as well have been dropped before that.
bool Engine::drop(const Work& work) {
  const bool is_harmless = aborting_ || run_.queues_calls || !work.is_point_to_point();
  const Handles::Handle* handle = is_harmless ? nullptr : handles_.find_open(work);
  if (handle == nullptr) {
    return false;
  }
  const bool may_be_held_back = leave_to_clock(work.group());
  const std::optional<Time> came = other_end_came(work, *handle);
  const bool is_lost = came ? !run_.orders_calls && *came == run_.now : !may_be_held_back;
  run_.learned(run_.scheduler->running(), is_lost);
  if (is_lost) {
    observe(handle->observed(Observation::Kind::dropped));
  }
  return is_lost;
}

std::optional<Time> Engine::other_end_came(const Work& work, const Handles::Handle& handle) {
  const check::MessageMatcher& messages = messages_.of(work.group());
  if (!messages.is_current(work.message(), work.rank(), work.seq())) {
    return handle.other_came;  // it has completed
  }
  const check::Message& message = messages.at(work.message());
  switch (message.phase) {
    case check::Message::Phase::planned:
    case check::Message::Phase::pending:
      return std::nullopt;
    case check::Message::Phase::matched:
      return messages.at(message.partner).posted;
    case check::Message::Phase::stuck:
    case check::Message::Phase::done:
    case check::Message::Phase::failed:
      break;
  }
  return handle.other_came;
}

// In reports, the rank is blocked in the first of them; the one that completes first wakes it.
void Engine::wait_any(std::span<const Work> works) {
  if (aborting_) [[unlikely]] {
    return end_call();
  }
  if (std::ranges::any_of(works, [this](const Work& work) { return is_completed(work); })) {
    return;
  }
  if (run_.options.decisions != nullptr) {
    run_.options.decisions->ordered_by_clock();
  }
  if (run_.queues_calls) {
    wait_on_host({.kind = HostWait::Kind::any, .works = works});
    return;
  }
  const Work& first = works.front();
  // Threads may wait for the same call, in which the rank waits once.
  for (const Work& other : works.subspan(1)) {
    if (other.is_point_to_point() || other.group() != first.group() || other.seq() != first.seq()) {
      enlist(other);
    }
  }
  try {
    aborting_ ? end_call() : block_in(first);
  } catch (...) {
    std::ranges::for_each(works.subspan(1), [this](const Work& other) { delist(other); });
    throw;
  }
  std::ranges::for_each(works, [this](const Work& work) { delist(work); });
}

// Lets `work` wake the running rank, which is about to block in another call.
void Engine::enlist(const Work& work) {
  if (work.is_point_to_point()) {
    messages_.of(work.group()).at(work.message()).waiting = true;
  } else if (Slot* slot = run_.matchers[work.group()]->find(work.seq())) {
    const Rank rank = run_.scheduler->running();
    if (std::ranges::find(slot->waiters, rank) == slot->waiters.end()) {
      slot->waiters.push_back(rank);
    }
  }
}

void Engine::delist(const Work& work) {
  if (aborting_) {
    return;
  }
  if (!work.is_point_to_point()) {
    if (Slot* slot = run_.matchers[work.group()]->find(work.seq())) {
      std::erase(slot->waiters, run_.scheduler->running());
    }
    return;
  }
  check::MessageMatcher& messages = messages_.of(work.group());
  if (messages.is_current(work.message(), work.rank(), work.seq())) {
    messages.at(work.message()).waiting = false;
  }
}

}  // namespace rollcall::sim
