#include "sim/match/message_matcher.h"

#include <algorithm>
#include <utility>

#include "sim/base/expects.h"

namespace rollcall::check {

void MessageQueue::remove(MessageId id) {
  const auto found = std::find(ids_.begin() + static_cast<std::ptrdiff_t>(head_), ids_.end(), id);
  expects(found != ids_.end(), "a message leaves the queue it is in");
  if (found == ids_.begin() + static_cast<std::ptrdiff_t>(head_)) {
    ++head_;
  } else {
    ids_.erase(found);
  }
  if (empty()) {
    ids_.clear();
    head_ = 0;
  }
}

std::size_t MessageMatcher::KeyHash::operator()(const Key& key) const {
  std::uint64_t bits = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.first)) << 32) |
                       static_cast<std::uint32_t>(key.second);
  bits = (bits ^ static_cast<std::uint32_t>(key.tag)) * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::size_t>(bits ^ (bits >> 29));
}

void MessageMatcher::begin_batch() {
  ++batch_;
  in_batch_ = true;
}

MessageId MessageMatcher::plan(const Op& op) {
  expects(is_point_to_point(op.kind), "only sends and receives are messages");
  expects(op.rank >= 0 && op.rank < group_size_, "a message is a member's");
  expects(op.root < group_size_, "the other end of a message is a member, or anyone");
  MessageId id = 0;
  if (free_.empty()) {
    id = static_cast<MessageId>(messages_.size());
    messages_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  if (!in_batch_) {
    ++batch_;
  }
  Message& message = messages_[id];
  message.op = op;
  message.phase = Message::Phase::planned;
  message.waiting = false;
  message.partner = no_message;
  message.source = -1;
  message.seq = next_[static_cast<std::size_t>(op.rank)]++;
  message.in_batch = in_batch_;
  message.batch = batch_;
  if ((op.async_op || is_ordered()) && op.tensors.input != nullptr) {
    message.kept = Tensor::share(*op.tensors.input);
  }
  return id;
}

void MessageMatcher::post(MessageId id, Time now) {
  Message& message = messages_[id];
  expects(message.phase == Message::Phase::planned, "a message is posted once");
  message.phase = Message::Phase::pending;
  message.posted = now;
  const Op& op = message.op;
  if (op.kind == OpKind::recv && op.root < 0) {
    post_any_source(id);
  } else if (discipline_ == Discipline::tagged) {
    post_tagged(id);
  } else {
    post_ordered(id);
  }
}

MessageId MessageMatcher::post(const Op& op, Time now) {
  const MessageId id = plan(op);
  post(id, now);
  return id;
}

MessageMatcher::Key MessageMatcher::key_of(const Message& message) const {
  const Op& op = message.op;
  if (is_ordered()) {
    const bool is_apart = discipline_ == Discipline::apart && message.in_batch;
    return {std::min(op.rank, op.root), std::max(op.rank, op.root), is_apart ? 1 : 0};
  }
  return op.kind == OpKind::send ? Key{op.rank, op.root, op.tag} : Key{op.root, op.rank, op.tag};
}

MessageMatcher::Channel& MessageMatcher::channel_of(const Message& message) {
  const Key key = key_of(message);
  const Op& op = message.op;
  std::uint32_t& recent = recent_[2 * static_cast<std::size_t>(op.rank) + (op.kind == OpKind::send ? 0 : 1)];
  if (recent < channels_.size() && channels_[recent].key == key) [[likely]] {
    return channels_[recent];
  }
  const auto [entry, is_new] = channel_ids_.try_emplace(key, static_cast<std::uint32_t>(channels_.size()));
  if (is_new) {
    channels_.push_back({.key = key, .first = {}, .second = {}});
  }
  recent = entry->second;
  return channels_[recent];
}

void MessageMatcher::post_tagged(MessageId id) {
  expects(messages_[id].op.root >= 0, "a message with a tag names its other end, or is from anyone");
  const bool sends = messages_[id].op.kind == OpKind::send;
  Channel& channel = channel_of(messages_[id]);
  MessageQueue& partners = sends ? channel.second : channel.first;
  if (partners.empty()) {
    (sends ? channel.first : channel.second).push(id);
    return;
  }
  const MessageId partner = partners.front();
  partners.remove(partner);
  pair_up(sends ? id : partner, sends ? partner : id);
}

void MessageMatcher::post_ordered(MessageId id) {
  const Op& op = messages_[id].op;
  expects(op.root >= 0, "in order, a message names its other end");
  Channel& channel = channel_of(messages_[id]);
  (op.rank < op.root ? channel.first : channel.second).push(id);
  while (match_heads(channel)) {
  }
}

// The first message of a kind among those at the head of a queue: its front, and the rest of the front's
// batch.
MessageId MessageMatcher::active(const MessageQueue& queue, OpKind kind) const {
  for (const MessageId id : queue.all()) {
    if (messages_[id].batch != messages_[queue.front()].batch) {
      break;
    }
    if (messages_[id].op.kind == kind) {
      return id;
    }
  }
  return no_message;
}

bool MessageMatcher::match_heads(Channel& channel) {
  const auto meet = [&](MessageQueue& from, MessageQueue& to) {
    if (from.empty() || to.empty()) {
      return false;
    }
    const MessageId send = active(from, OpKind::send);
    const MessageId receive = active(to, OpKind::recv);
    if (send == no_message || receive == no_message) {
      return false;
    }
    from.remove(send);
    to.remove(receive);
    pair_up(send, receive);
    return true;
  };
  return meet(channel.first, channel.second) || meet(channel.second, channel.first);
}

MessageMatcher::Meeting MessageMatcher::meet(MessageId id) {
  expects(is_ordered(), "only ordered messages make communicators");
  const Message& message = messages_[id];
  Channel& channel = channel_of(message);
  const bool is_first = message.op.rank < message.op.root;
  bool& has_come = is_first ? channel.first_came : channel.second_came;
  if (!(is_first ? channel.second_came : channel.first_came)) {
    has_come = true;
    return Meeting::alone;
  }
  return std::exchange(has_come, true) ? Meeting::before : Meeting::now;
}

void MessageMatcher::match_any_source() {
  expects(any_source_.empty() || discipline_ == Discipline::tagged, "only Gloo receives from anyone");
  std::ranges::sort(any_source_, [this](MessageId a, MessageId b) {
    return std::pair(messages_[a].op.rank, messages_[a].seq) <
           std::pair(messages_[b].op.rank, messages_[b].seq);
  });
  std::erase_if(any_source_, [this](MessageId receive) {
    const Op& op = messages_[receive].op;
    for (Rank source = 0; source < group_size_; ++source) {
      const auto found = channel_ids_.find(Key{source, op.rank, op.tag});
      if (found != channel_ids_.end() && !channels_[found->second].first.empty()) {
        MessageQueue& sends = channels_[found->second].first;
        const MessageId send = sends.front();
        sends.remove(send);
        pair_up(send, receive);
        return true;
      }
    }
    return false;
  });
}

void MessageMatcher::post_any_source(MessageId id) {
  any_source_.push_back(id);
  receives_from_anyone_.resize(static_cast<std::size_t>(group_size_));
  receives_from_anyone_[static_cast<std::size_t>(messages_[id].op.rank)] = true;
}

std::vector<std::pair<MessageId, MessageId>> MessageMatcher::offers_to_anyone() const {
  std::vector<std::pair<MessageId, MessageId>> offers;
  for (const Channel& channel : channels_) {
    const bool counts = discipline_ == Discipline::tagged && anyone_receives() && !channel.first.empty() &&
                        receives_from_anyone_[static_cast<std::size_t>(channel.key.second)];
    if (!counts) {
      continue;
    }
    MessageId receive = no_message;
    for (const MessageId id : any_source_) {
      const Message& message = messages_[id];
      const bool fits = message.op.rank == channel.key.second && message.op.tag == channel.key.tag;
      if (fits && (receive == no_message || message.seq < messages_[receive].seq)) {
        receive = id;
      }
    }
    offers.emplace_back(channel.first.front(), receive);
  }
  return offers;
}

void MessageMatcher::accept(MessageId send, MessageId receive) {
  expects(messages_[send].op.tag == messages_[receive].op.tag, "an accepted send has the receive's tag");
  expects(messages_[send].op.root == messages_[receive].op.rank, "an accepted send goes to the receiver");
  queue_of(messages_[send]).remove(send);
  std::erase(any_source_, receive);
  pair_up(send, receive);
}

// Checked here again, where both disciplines end: what has been paired is never looked at twice.
void MessageMatcher::pair_up(MessageId send, MessageId receive) {
  expects(messages_[send].op.kind == OpKind::send, "the first of a pair is the send");
  expects(messages_[receive].op.kind == OpKind::recv, "the second of a pair is the receive");
  expects(messages_[send].phase == Message::Phase::pending, "a send is paired once");
  expects(messages_[receive].phase == Message::Phase::pending, "a receive is paired once");
  messages_[send].phase = Message::Phase::matched;
  messages_[send].partner = receive;
  messages_[receive].phase = Message::Phase::matched;
  messages_[receive].partner = send;
  matched_.emplace_back(send, receive);
}

void MessageMatcher::sort_matched() {
  const auto sender = [this](const std::pair<MessageId, MessageId>& pair) {
    return std::pair(messages_[pair.first].op.rank, messages_[pair.first].seq);
  };
  if (!std::ranges::is_sorted(matched_, {}, sender)) {  // it usually is: ranks run one after the other
    std::ranges::sort(matched_, {}, sender);
  }
}

bool MessageMatcher::is_current(MessageId id, Rank rank, std::int64_t seq) const {
  return id < messages_.size() && messages_[id].op.rank == rank && messages_[id].seq == seq;
}

void MessageMatcher::forget(MessageId id) {
  expects(messages_[id].seq >= 0, "a message is forgotten once");
  messages_[id].seq = -1;  // no ticket names it any more
  if (messages_[id].kept) {
    messages_[id].kept = {};
  }
  free_.push_back(id);
}

MessageQueue& MessageMatcher::queue_of(const Message& message) {
  const Op& op = message.op;
  Channel& channel = channel_of(message);
  const bool in_first = is_ordered() ? op.rank < op.root : op.kind == OpKind::send;
  return in_first ? channel.first : channel.second;
}

void MessageMatcher::withdraw(MessageId id) {
  const Message::Phase phase = messages_[id].phase;
  if (phase != Message::Phase::pending) {
    expects(phase == Message::Phase::stuck || phase == Message::Phase::failed,
            "a message on its way arrives");
    return;  // in no queue any more
  }
  const Op& op = messages_[id].op;
  if (op.kind == OpKind::recv && op.root < 0) {
    std::erase(any_source_, id);
  } else {
    queue_of(messages_[id]).remove(id);
  }
  forget(id);
}

std::vector<MessageId> MessageMatcher::pending() const {
  std::vector<MessageId> ids;
  for (MessageId id = 0; id < messages_.size(); ++id) {
    const Message::Phase phase = messages_[id].phase;
    if (messages_[id].seq >= 0 && (phase == Message::Phase::pending || phase == Message::Phase::stuck)) {
      ids.push_back(id);
    }
  }
  std::ranges::sort(ids, [this](MessageId a, MessageId b) {
    return std::pair(messages_[a].op.rank, messages_[a].seq) <
           std::pair(messages_[b].op.rank, messages_[b].seq);
  });
  return ids;
}

}  // namespace rollcall::check
