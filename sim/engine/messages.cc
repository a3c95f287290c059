#include "sim/engine/messages.h"

#include <algorithm>
#include <ranges>

#include "sim/c10d/apply.h"
#include "sim/c10d/p2p.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::Message;
using check::MessageId;
using check::MessageMatcher;

}  // namespace

Messages::Messages(Run& run, CostModel& cost) : run_(run), cost_(cost) {
  const auto is_watched = [&run](Rank rank) { return run.options.decisions->watches(rank); };
  if (run.orders_calls &&
      std::ranges::any_of(std::views::iota(Rank{0}, run.options.world_size), is_watched)) {
    causes_ = std::make_unique<Causes>(run.ranks());
  }
}

void Messages::add_group(bool keeps_batches_apart) {
  of_.emplace_back();
  keeps_batches_apart_.push_back(keeps_batches_apart);
}

MessageMatcher& Messages::open(GroupId group) {
  const auto discipline = keeps_batches_apart_[group] ? MessageMatcher::Discipline::apart
                                                      : MessageMatcher::usual_on(run_.rules->traits());
  of_[group] = std::make_unique<MessageMatcher>(discipline, run_.members[group].size());
  for (Rank member = 0; run_.orders_calls && member < run_.members[group].size(); ++member) {
    if (run_.options.decisions->watches(run_.members[group].ranks[static_cast<std::size_t>(member)])) {
      of_[group]->watch(member);
    }
  }
  run_.groups[group].messages = of_[group].get();
  return *of_[group];
}

MessageId Messages::plan(const Op& op) {
  MessageMatcher& messages = of(op.group);
  detail::check_message(op, messages.group_size(), messages.is_ordered(), *run_.torch);
  return messages.plan(op);
}

const Message& Messages::post(GroupId group, MessageId id) {
  if (posted_.empty() || posted_.back() != group) {
    posted_.push_back(group);
  }
  MessageMatcher& messages = of(group);
  Message& message = messages.at(id);
  if (causes_ != nullptr) [[unlikely]] {
    message.known = causes_->post(run_.members[group].ranks[static_cast<std::size_t>(message.op.rank)]);
  }
  messages.post(id, run_.now);
  return message;
}

std::size_t Messages::take_delivery(GroupId group) {
  if (free_.empty()) {
    free_.push_back(deliveries_.size());
    deliveries_.emplace_back();
  }
  const std::size_t number = free_.back();
  free_.pop_back();
  expects(deliveries_[number].pairs.empty(), "what has arrived is delivered once");
  deliveries_[number].group = group;
  return number;
}

// Pairs of equal size, the usual case, share an event.
void Messages::schedule() {
  std::sort(posted_.begin(), posted_.end());
  posted_.erase(std::unique(posted_.begin(), posted_.end()), posted_.end());
  for (const GroupId group : posted_) {
    MessageMatcher& messages = of(group);
    messages.settle_arrivals();
    if (run_.options.decisions != nullptr && !run_.orders_calls && messages.anyone_receives()) {
      run_.options.decisions->kept_order();
    }
    messages.sort_matched();                // not in the order in which ranks ran: schedules must not show
    std::size_t open = deliveries_.size();  // the delivery being filled
    Duration open_cost = -1;
    for (const auto& pair : messages.matched()) {
      const Op& send = messages.at(pair.first).op;
      const Duration cost = cost_.of_message(send, messages.at(pair.second).op.rank, run_.members[group]);
      expects(cost >= 0, "nothing arrives before it is sent");
      if (cost != open_cost) {
        open = take_delivery(group);
        open_cost = cost;
        run_.events.add(run_.now + cost,
                        {.kind = RunEvent::Kind::deliver, .seq = static_cast<std::int64_t>(open)});
      }
      deliveries_[open].pairs.push_back(pair);
    }
    messages.matched().clear();
  }
  posted_.clear();
}

std::pair<Fate, Fate> Messages::exchange(GroupId group, MessageId send_id, MessageId receive_id) {
  MessageMatcher& messages = of(group);
  Message& send = messages.at(send_id);
  Message& receive = messages.at(receive_id);
  expects(send.op.kind == OpKind::send, "a message has one end that sends");
  expects(receive.op.kind == OpKind::recv, "and one that receives");
  receive.source = send.op.rank;
  if (causes_ != nullptr) {
    causes_->end(group, send.op.rank, send.seq, receive.known);
    causes_->end(group, receive.op.rank, receive.seq, send.known);
  }
  if (send.op.numel == receive.op.numel && send.op.dtype == receive.op.dtype) [[likely]] {
    apply_message(*receive.op.tensors.input, *send.op.tensors.input);
    return {Fate::completes, Fate::completes};
  }
  Message known = receive;
  known.op.root = send.op.rank;  // a receive from any source has its sender now
  run_.notes->incidents.message(run_.now, send, known);
  const std::pair<Fate, Fate> fates = run_.rules->settle(send.op, receive.op);
  receive.sent_bytes = send.op.numel * static_cast<std::int64_t>(size_of(send.op.dtype));
  return fates;
}

void Messages::give_up(const check::RankStatus& status) {
  MessageMatcher& messages = of(status.group);
  if (!messages.is_current(status.message, status.group_rank, status.seq)) {
    return;
  }
  Message& message = messages.at(status.message);
  message.waiting = false;
  if (message.phase == Message::Phase::matched) {
    message.kept = Tensor::share(*message.op.tensors.input);
  } else {
    messages.withdraw(status.message);
    posted_.push_back(status.group);
  }
}

void Messages::withdraw(Rank rank) {
  for (std::size_t id = 0; id < of_.size(); ++id) {
    const Rank member = run_.members[id].rank_of(rank);
    if (member < 0 || of_[id] == nullptr) {
      continue;
    }
    for (const MessageId message : of_[id]->pending()) {
      const Message& posted = of_[id]->at(message);
      if (posted.op.rank != member || posted.phase != Message::Phase::pending) {
        continue;
      }
      if (run_.recorder) {
        run_.recorder->message(run_.groups[id], posted, Span::open);
      }
      of_[id]->withdraw(message);
      posted_.push_back(static_cast<GroupId>(id));
    }
  }
}

bool Messages::is_watching() const {
  return std::ranges::any_of(
      of_, [](const auto& messages) { return messages != nullptr && messages->is_watching(); });
}

void Messages::let_arrive(GroupId group, Rank source, Rank receiver) {
  of(group).let_arrive(source, receiver);
  posted_.push_back(group);
}

}  // namespace rollcall::sim
