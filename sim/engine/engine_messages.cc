// The engine's part about sends and receives: ranks that wait for a message, and continue when it has arrived.

#include "sim/base/expects.h"
#include "sim/engine/engine.h"
#include "sim/gloo/gloo_transport.h"
#include "sim/match/slot_calls.h"
#include "sim/tensor/tensor_bytes.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::Message;
using check::MessageId;
using check::MessageMatcher;
using check::RankStatus;

std::string overflow_of(const Message& message, const TorchTraits& torch) {
  return gloo::overflow_text(static_cast<std::size_t>(message.sent_bytes),
                             static_cast<std::size_t>(bytes_of(message.op)), torch);
}

// Ends the batches, even if one of their operations is refused.
struct BatchEnd {
  const std::vector<MessageMatcher*>& batched;
  bool& is_in_batch;
  ~BatchEnd() {
    is_in_batch = false;
    for (MessageMatcher* messages : batched) {
      messages->end_batch();
    }
  }
};

}  // namespace

Work Engine::post(const Op& op) {
  const MessageId id = messages_.plan(op);
  if (run_.orders_calls) [[unlikely]] {
    await_turn(op, id);
  }
  const Work work(op.group, op.rank, messages_.post(op.group, id).seq, id);
  if (op.async_op) {
    handles_.give(run_.scheduler->running(), op, work);
  }
  return work;
}

std::vector<Work> Engine::issue_batch(std::span<const Op> ops) {
  await_communicators(ops);
  if (run_.queues_calls) {
    await_room();  // a host that stopped within the batch would separate messages that are launched together
  }
  std::vector<MessageMatcher*> batched;
  for (const Op& op : ops) {
    batched.push_back(&messages_.of(op.group));
    batched.back()->begin_batch();  // one batch per group: its number only has to differ from other batches'
  }
  const BatchEnd end{batched, is_in_batch_};
  is_in_batch_ = true;
  std::vector<Work> works;
  works.reserve(ops.size());
  for (const Op& op : ops) {
    works.push_back(issue(op));
  }
  return works;
}

void Engine::wait_message(const Work& work) {
  if (messages_.causes() == nullptr) [[likely]] {
    return await_message(work);
  }
  // However the wait ends, the rank then knows about the message's other end.
  struct Learn {
    Causes& causes;
    Rank rank;
    const Work& work;
    ~Learn() { causes.waited_for_message(rank, work); }
  } const learn{*messages_.causes(), run_.scheduler->running(), work};
  await_message(work);
}

void Engine::await_message(const Work& work) {
  MessageMatcher& messages = messages_.of(work.group());
  if (!messages.is_current(work.message(), work.rank(), work.seq())) {
    return;
  }
  Message& message = messages.at(work.message());
  if (message.phase == Message::Phase::done) {
    return;
  }
  if (message.phase == Message::Phase::failed) {
    interrupt({true, overflow_of(message, *run_.torch)});
  }
  message.waiting = true;
  run_.status_of(run_.scheduler->running()).wait_in(work.group(), work.rank(), work.seq(), work.message());
  suspend_rank(message.op.tensors.input);
}

Rank Engine::source_of(const Work& work) {
  if (aborting_) [[unlikely]] {
    return 0;  // for a destructor of a rank that unwinds; see end_call
  }
  MessageMatcher& messages = messages_.of(work.group());
  expects(messages.is_current(work.message(), work.rank(), work.seq()),
          "a receive's source is asked for once");
  const Rank source = messages.at(work.message()).source;
  run_.learned(run_.scheduler->running(), source);
  messages.forget(work.message());
  return source;
}

void Engine::deliver(GroupId group, MessageId send, MessageId receive) {
  MessageMatcher& messages = messages_.of(group);
  const Message& sent = messages.at(send);
  const Message& received = messages.at(receive);
  note_meeting(group, send, sent, received.posted);
  note_meeting(group, receive, received, sent.posted);
  const std::int64_t send_seq = sent.seq;
  const std::pair<Fate, Fate> fates = messages_.exchange(group, send, receive);
  tell_receiver(group, received);
  finish_message(group, send, fates.first);
  if (!run_.orders_calls || !messages.hold_back(send_seq, receive, fates.second)) {
    finish_message(group, receive, fates.second);
  }
}

// For a handle that its rank may let go of: when the other end came.
inline void Engine::note_meeting(GroupId group, MessageId id, const Message& message, Time other_came) {
  if (message.op.async_op && !run_.queues_calls) {
    if (Handles::Handle* handle = handles_.find(Work(group, message.op.rank, message.seq, id))) {
      handle->other_came = other_came;
      note_if_late(group, *handle);
    }
  }
}

// The clock is about to decide whether a message's other end came in time. True if it cannot, because a search may have
// held that end back.
bool Engine::leave_to_clock(GroupId group) {
  if (run_.options.decisions != nullptr) {
    run_.options.decisions->judged_by_clock();
  }
  return run_.orders_calls && messages_.is_watching(group);
}

// A message ends with its rank's process if nothing has waited for it.
void Engine::note_if_late(GroupId group, const Handles::Handle& handle) {
  const bool has_ended = run_.status_of(handle.rank).state == RankStatus::State::finished;
  if (!has_ended || handle.was_waited_for || aborting_) {
    return;
  }
  const bool may_be_held_back = leave_to_clock(group);
  if (handle.other_came > ended_at_[static_cast<std::size_t>(handle.rank)] && !may_be_held_back) {
    run_.notes->incidents.observe(run_.now, handle.rank, handle.observed(Observation::Kind::dropped));
  }
}

// Reports what the rank has received, even if the receive failed: its error depends on the sender.
void Engine::tell_receiver(GroupId group, const Message& receive) const {
  if (run_.learner != nullptr) [[unlikely]] {
    Encoder values;
    write_values(values, *receive.op.tensors.input);
    const Rank rank = run_.members[group].ranks[static_cast<std::size_t>(receive.op.rank)];
    run_.learned(rank, receive.seq, receive.sent_bytes, values.bytes);
  }
}

void Engine::finish_message(GroupId group, MessageId id, Fate fate) {
  MessageMatcher& messages = messages_.of(group);
  Message& message = messages.at(id);
  const Rank rank = run_.groups[group].members->ranks[static_cast<std::size_t>(message.op.rank)];
  if (fate == Fate::hangs) {
    message.phase = Message::Phase::stuck;
    return;
  }
  run_.learned(rank, group, message.seq, fate);
  if (run_.recorder) {
    run_.recorder->message(run_.groups[group], message, run_.now);
  }
  if (run_.queues_calls) {
    devices_[static_cast<std::size_t>(rank)].finish_message(group, message.seq);
  }
  const bool waiting = message.waiting;
  if (fate == Fate::completes) {
    const bool may_be_asked = message.op.kind == OpKind::recv && message.op.root < 0;
    message.phase = Message::Phase::done;
    if (!may_be_asked) {
      messages.forget(id);
    }
    if (run_.queues_calls) {
      pump(rank);
    } else if (waiting) {
      wake(rank);
    }
    return;
  }
  fail_message(rank, message);
}

// Gloo's own thread ends the process, wherever it waits.
void Engine::fail_message(Rank rank, Message& message) {
  message.phase = Message::Phase::failed;
  if (run_.waits(rank)) {
    wake_interrupted(rank, {true, overflow_of(message, *run_.torch)});
  }
}

}  // namespace rollcall::sim
