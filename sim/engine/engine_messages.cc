// The engine's part about sends and receives. Like collectives they are matched by a pure matcher and
// completed by events; unlike them, each is between two ranks, so what arrives at one time is delivered in
// one event.

#include <algorithm>

#include "sim/base/expects.h"
#include "sim/c10d/apply.h"
#include "sim/c10d/p2p.h"
#include "sim/engine/engine.h"
#include "sim/gloo/gloo_transport.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::Message;
using check::MessageId;
using check::MessageMatcher;
using check::RankStatus;

bool agree(const Op& send, const Op& receive) {
  return send.numel == receive.numel && send.dtype == receive.dtype;
}

std::int64_t message_bytes(const Op& op) { return op.numel * static_cast<std::int64_t>(size_of(op.dtype)); }

std::string overflow_of(const Message& message) {
  return gloo::overflow_text(static_cast<std::size_t>(message.sent_bytes),
                             static_cast<std::size_t>(message_bytes(message.op)));
}

// Ends the batches, also when one of their operations is refused.
struct BatchEnd {
  const std::vector<MessageMatcher*>& batched;
  ~BatchEnd() {
    for (MessageMatcher* messages : batched) {
      messages->end_batch();
    }
  }
};

}  // namespace

MessageMatcher& Engine::open_messages(GroupId group) {
  const auto discipline =
      lazy_[group] ? MessageMatcher::Discipline::apart : MessageMatcher::usual_on(rules_->traits());
  messengers_[group] = std::make_unique<MessageMatcher>(discipline, members_[group].size());
  groups_[group].messages = messengers_[group].get();
  return *messengers_[group];
}

Work Engine::post(const Op& op) {
  MessageMatcher& messages = messages_of(op.group);
  const MessageId id = plan_message(messages, op);
  post_planned(messages, op.group, id);
  return Work(op.group, op.rank, messages.at(id).seq, id);
}

MessageId Engine::plan_message(MessageMatcher& messages, const Op& op) {
  detail::check_message(op, matchers_[op.group]->size(), messages.is_ordered());
  return messages.plan(op);
}

void Engine::post_planned(MessageMatcher& messages, GroupId group, MessageId id) {
  if (posted_groups_.empty() || posted_groups_.back() != group) {
    posted_groups_.push_back(group);
  }
  messages.post(id, now_);
}

std::vector<Work> Engine::issue_batch(std::span<const Op> ops) {
  await_communicators(ops);
  std::vector<MessageMatcher*> batched;
  for (const Op& op : ops) {
    batched.push_back(&messages_of(op.group));
    batched.back()->begin_batch();  // one batch per group: numbers only have to differ from others'
  }
  const BatchEnd end{batched};
  std::vector<Work> works;
  works.reserve(ops.size());
  for (const Op& op : ops) {
    works.push_back(issue(op));
  }
  return works;
}

void Engine::wait_message(const Work& work) {
  MessageMatcher& messages = messages_of(work.group());
  if (!messages.is_current(work.message(), work.rank(), work.seq())) {
    return;
  }
  Message& message = messages.at(work.message());
  if (message.phase == Message::Phase::done) {
    return;
  }
  if (message.phase == Message::Phase::failed) {
    interrupt({true, overflow_of(message)});
  }
  message.waiting = true;
  RankStatus& status = status_[static_cast<std::size_t>(scheduler_->running())];
  status.state = RankStatus::State::waiting;
  status.group = work.group();
  status.group_rank = work.rank();
  status.seq = work.seq();
  status.message = work.message();
  suspend_rank(message.op.tensors.input);
}

Rank Engine::source_of(const Work& work) {
  if (aborting_) [[unlikely]] {
    return 0;  // to a destructor of a rank that unwinds; see end_call
  }
  MessageMatcher& messages = messages_of(work.group());
  expects(messages.is_current(work.message(), work.rank(), work.seq()),
          "a receive's source is asked for once");
  const Rank source = messages.at(work.message()).source;
  messages.forget(work.message());
  return source;
}

// Gives every newly matched pair its time of arrival. Pairs of equal size, the usual case, share an event.
void Engine::schedule_messages() {
  std::sort(posted_groups_.begin(), posted_groups_.end());
  posted_groups_.erase(std::unique(posted_groups_.begin(), posted_groups_.end()), posted_groups_.end());
  for (const GroupId group : posted_groups_) {
    MessageMatcher& messages = messages_of(group);
    if (!orders_calls_) {
      messages.match_any_source();
      if (options_.decisions != nullptr && messages.anyone_receives()) {
        options_.decisions->kept_order();
      }
    }
    messages.sort_matched();                // not the order in which ranks ran: schedules must not be visible
    std::size_t open = deliveries_.size();  // the delivery being filled
    Duration open_cost = -1;
    for (const auto& pair : messages.matched()) {
      const Op& send = messages.at(pair.first).op;
      const Duration cost = cost_->of_message(send, messages.at(pair.second).op.rank, members_[group]);
      if (cost != open_cost) {
        if (free_deliveries_.empty()) {
          free_deliveries_.push_back(deliveries_.size());
          deliveries_.emplace_back();
        }
        open = free_deliveries_.back();
        free_deliveries_.pop_back();
        open_cost = cost;
        deliveries_[open].group = group;
        events_.add(now_ + cost, {.kind = Event::Kind::deliver, .seq = static_cast<std::int64_t>(open)});
      }
      deliveries_[open].pairs.push_back(pair);
    }
    messages.matched().clear();
  }
  posted_groups_.clear();
}

void Engine::deliver(GroupId group, MessageId send_id, MessageId receive_id) {
  MessageMatcher& messages = messages_of(group);
  Message& send = messages.at(send_id);
  Message& receive = messages.at(receive_id);
  receive.source = send.op.rank;
  std::pair<Fate, Fate> fates{Fate::completes, Fate::completes};
  if (agree(send.op, receive.op)) [[likely]] {
    apply_message(*receive.op.tensors.input, *send.op.tensors.input);
  } else {
    Message known = receive;
    known.op.root = send.op.rank;  // a receive from anyone has its sender now
    notes_->incidents.message(now_, send, known);
    fates = rules_->settle(send.op, receive.op);
    receive.sent_bytes = message_bytes(send.op);
  }
  finish_message(messages, group, send_id, fates.first);
  finish_message(messages, group, receive_id, fates.second);
}

void Engine::finish_message(MessageMatcher& messages, GroupId group, MessageId id, Fate fate) {
  Message& message = messages.at(id);
  const Rank rank = groups_[group].members->ranks[static_cast<std::size_t>(message.op.rank)];
  if (fate == Fate::hangs) {
    message.phase = Message::Phase::stuck;
    return;
  }
  if (recorder_) {
    recorder_->message(groups_[group], message, now_);
  }
  if (queues_launches_) {
    finish_message_on_device(rank, message);
  }
  const bool waiting = message.waiting;
  if (fate == Fate::completes) {
    const bool may_be_asked = message.op.kind == OpKind::recv && message.op.root < 0;
    message.phase = Message::Phase::done;
    if (!may_be_asked) {
      messages.forget(id);
    }
    if (queues_launches_) {
      pump(rank);
    } else if (waiting) {
      wake(rank);
    }
    return;
  }
  message.phase = Message::Phase::failed;
  if (status_[static_cast<std::size_t>(rank)].state == RankStatus::State::waiting) {
    wake_interrupted(rank,
                     {true, overflow_of(message)});  // Gloo's own thread ends the process, wherever it waits
  }
}

// The rank no longer waits for the message. One on its way arrives all the same, and needs its tensor.
void Engine::give_up_message(const RankStatus& status) {
  MessageMatcher& messages = messages_of(status.group);
  if (!messages.is_current(status.message, status.group_rank, status.seq)) {
    return;
  }
  Message& message = messages.at(status.message);
  message.waiting = false;
  if (message.phase == Message::Phase::matched) {
    message.kept = Tensor::share(*message.op.tensors.input);
  } else {
    messages.withdraw(status.message);
  }
}

}  // namespace rollcall::sim
