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
  message.arrived = moment_;
  expects(!is_watching() || message.known != nullptr, "where ranks are watched it is known who knew what");
  const Op& op = message.op;
  if (op.kind == OpKind::recv && op.root < 0) {
    post_any_source(id);
  } else if (discipline_ == Discipline::tagged) {
    post_tagged(id);
  } else {
    post_ordered(id);
  }
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
  recent = look_up(key);
  return channels_[recent];
}

std::uint32_t MessageMatcher::look_up(const Key& key) {
  const auto [entry, is_new] = channel_ids_.try_emplace(key, static_cast<std::uint32_t>(channels_.size()));
  if (is_new) {
    channels_.push_back({.key = key, .first = {}, .second = {}});
  }
  return entry->second;
}

void MessageMatcher::post_tagged(MessageId id) {
  const Op& op = messages_[id].op;
  expects(op.root >= 0, "a message with a tag names its other end, or is from anyone");
  const bool sends = op.kind == OpKind::send;
  if (is_watching()) {
    if (sends && connections_->watches(op.root)) {
      messages_[id].arrived = not_arrived;
      connections_->write(op.rank, op.root,
                          {.kind = Parcel::Kind::notice,
                           .id = id,
                           .seq = messages_[id].seq,
                           .tag = op.tag,
                           .written = messages_[id].posted,
                           .known = messages_[id].known});
    } else if (!sends) {
      bind(id, op.root);
    }
  }
  Channel& channel = channel_of(messages_[id]);
  MessageQueue& partners = sends ? channel.second : channel.first;
  if (partners.empty()) {
    (sends ? channel.first : channel.second).push(id);
  } else {
    const MessageId partner = partners.front();
    partners.remove(partner);
    pair_up(sends ? id : partner, sends ? partner : id);
  }
  if (is_watching()) {
    sends ? pump(op.rank, op.root) : pump(op.root, op.rank);
  }
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

void MessageMatcher::settle_arrivals() {
  expects(any_source_.empty() || discipline_ == Discipline::tagged, "only Gloo receives from anyone");
  std::ranges::sort(any_source_, {}, [this](MessageId receive) { return place_of(receive); });
  ++moment_;
  std::erase_if(any_source_, [this](MessageId receive) {
    const bool is_watched = is_watching() && connections_->watches(messages_[receive].op.rank);
    return !is_watched && take_arrived(receive, moment_);
  });
}

// Takes the message that arrived first, before the moment `before`, of those not taken yet. False if there is none.
bool MessageMatcher::take_arrived(MessageId receive, std::uint64_t before) {
  const Op op = messages_[receive].op;
  Channel* first = nullptr;
  const auto arrived = [this](const Channel& channel) { return messages_[channel.first.front()].arrived; };
  for (Rank source = 0; source < group_size_; ++source) {
    const auto found = channel_ids_.find(Key{source, op.rank, op.tag});
    if (found == channel_ids_.end() || channels_[found->second].first.empty()) {
      continue;
    }
    Channel& channel = channels_[found->second];
    if (arrived(channel) < before && (first == nullptr || arrived(channel) < arrived(*first))) {
      first = &channel;
    }
  }
  if (first == nullptr) {
    return false;
  }
  const MessageId send = first->first.front();
  first->first.remove(send);
  take(send, receive);
  return true;
}

// A receive from anyone takes a message that has arrived; it comes after everything that arrived in its mailbox.
void MessageMatcher::take(MessageId send, MessageId receive) {
  if (is_watching()) {
    Moment known = *messages_[receive].known;
    known.join(*messages_[send].known);
    known.join(mailboxes_[{messages_[receive].op.rank, messages_[receive].op.tag}]);
    messages_[receive].known = std::make_shared<const Moment>(std::move(known));
  }
  bind(receive, messages_[send].op.rank);
  pair_up(send, receive);
}

void MessageMatcher::post_any_source(MessageId id) {
  asked_anyone_.emplace(messages_[id].op.rank, messages_[id].op.tag);
  if (!take_arrived(id, moment_)) {
    any_source_.push_back(id);
  }
}

// The first open receive from anyone, of one rank and tag.
MessageId MessageMatcher::open_to_anyone(Rank receiver, std::int32_t tag) const {
  MessageId first = no_message;
  for (const MessageId id : any_source_) {
    const Message& message = messages_[id];
    const bool fits = message.op.rank == receiver && message.op.tag == tag;
    if (fits && (first == no_message || message.seq < messages_[first].seq)) {
      first = id;
    }
  }
  return first;
}

// ---- Connections ----

void MessageMatcher::watch(Rank receiver) {
  expects(messages_.empty(), "a rank is watched from the first message on");
  if (discipline_ != Discipline::tagged) {
    return;  // NCCL pairs everything in order
  }
  if (connections_ == nullptr) {
    connections_ = std::make_unique<Connections>();
  }
  connections_->watch(receiver);
}

bool MessageMatcher::races_with_arrivals(const Op& receive) const {
  return is_watching() && receive.kind == OpKind::recv && receive.root >= 0 &&
         connections_->watches(receive.rank) && has_asked_anyone(receive.rank, receive.tag);
}

// Assigns a receive to a sender and tells the sender, which may then send the bytes.
void MessageMatcher::bind(MessageId receive, Rank source) {
  if (!is_watching() || !connections_->watches(source)) {
    return;
  }
  const Op& op = messages_[receive].op;
  const Message& message = messages_[receive];
  connections_->write(
      op.rank, source,
      {.kind = Parcel::Kind::ready, .id = receive, .seq = message.seq, .tag = op.tag, .known = message.known},
      message.seq);
  pump(op.rank, source);
}

// Matches a watched sender's pairs, in order, as far as its permits go.
void MessageMatcher::release(Rank sender, Rank receiver, std::int32_t tag) {
  Connections::Permits& permits = connections_->permits(sender, receiver, tag);
  while (permits.left > 0 && !permits.waiting.empty()) {
    --permits.left;
    matched_.push_back(permits.waiting.front());
    permits.waiting.pop_front();
  }
}

bool MessageMatcher::is_matched(const Parcel& notice, Rank from) const {
  return !is_current(notice.id, from, notice.seq) || messages_[notice.id].phase != Message::Phase::pending;
}

// Takes from a connection all that needs no decision: bytes, permits to send, and notices of messages whose receives
// were posted first, to ranks that have not received from anyone.
void MessageMatcher::pump(Rank from, Rank to) {
  std::deque<Parcel>& parcels = connections_->between(from, to);
  while (!parcels.empty()) {
    const Parcel next = parcels.front();
    const bool is_notice = next.kind == Parcel::Kind::notice;
    if (is_notice && (has_asked_anyone(to, next.tag) || !is_matched(next, from))) {
      return;
    }
    parcels.pop_front();
    if (next.kind == Parcel::Kind::ready) {
      ++connections_->permits(to, from, next.tag).left;
      release(to, from, next.tag);
    } else if (next.kind == Parcel::Kind::bytes) {
      arrived_.emplace_back(next.id, next.fate);
    }
  }
}

// The connections to a rank on which the next notice should arrive. As long as its arrival could not be noticed, it may
// as well be late. It could be noticed if a receive from anyone is open, if permits or bytes are behind it, or if
// another notice with its tag is about to arrive for one of these reasons: then it may have been there before.
std::set<Rank> MessageMatcher::awaited_connections(Rank to) const {
  std::set<std::int32_t> tags;
  for (const MessageId id : any_source_) {
    if (messages_[id].op.rank == to) {
      tags.insert(messages_[id].op.tag);
    }
  }
  std::set<Rank> awaited;
  const auto look = [&](Rank from, const std::deque<Parcel>& parcels) {
    const auto matters = [&](const Parcel& parcel) {
      return parcel.kind != Parcel::Kind::notice || is_matched(parcel, from) || tags.contains(parcel.tag);
    };
    const auto last = std::find_if(parcels.rbegin(), parcels.rend(), matters).base();
    bool is_new = last != parcels.begin() && awaited.insert(from).second;
    for (auto parcel = parcels.begin(); parcel != last; ++parcel) {
      if (parcel->kind == Parcel::Kind::notice && !is_matched(*parcel, from)) {
        is_new = tags.insert(parcel->tag).second || is_new;
      }
    }
    return is_new;
  };
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (const auto& [ends, parcels] : connections_->all()) {
      is_new = (ends.second == to && look(ends.first, parcels)) || is_new;
    }
  }
  return awaited;
}

std::vector<MessageMatcher::Arrival> MessageMatcher::arrivals() const {
  std::vector<Arrival> arrivals;
  if (!is_watching()) {
    return arrivals;
  }
  std::map<Rank, std::set<Rank>> awaited;
  for (const auto& [ends, parcels] : connections_->all()) {
    if (!parcels.empty() && !awaited.contains(ends.second)) {
      awaited.emplace(ends.second, awaited_connections(ends.second));
    }
  }
  for (const auto& [ends, parcels] : connections_->all()) {
    const auto& [from, to] = ends;
    std::set<std::int32_t> tags;
    for (const Parcel& parcel : parcels) {
      if (parcel.kind != Parcel::Kind::notice || !tags.insert(parcel.tag).second) {
        continue;
      }
      const MessageId receive = open_to_anyone(to, parcel.tag);
      const Time since =
          receive == no_message ? parcel.written : std::max(parcel.written, messages_[receive].posted);
      const bool is_next = &parcel == &parcels.front();
      arrivals.push_back({from, to, parcel.tag, parcel.seq, is_next && awaited[to].contains(from), since});
    }
  }
  return arrivals;
}

// As in Gloo's Pair::handleRemotePendingSend: a receive that names the source and was posted first gets the message,
// else the first receive from anyone; else the message is remembered for the next receive.
void MessageMatcher::let_arrive(Rank source, Rank receiver) {
  std::deque<Parcel>& parcels = connections_->between(source, receiver);
  expects(!parcels.empty() && parcels.front().kind == Parcel::Kind::notice, "what arrives is a notice");
  const Parcel notice = parcels.front();
  parcels.pop_front();
  if (!is_matched(notice, source)) {
    messages_[notice.id].arrived = moment_++;
    mailboxes_[{receiver, notice.tag}].join(*notice.known);
    if (const MessageId receive = open_to_anyone(receiver, notice.tag); receive != no_message) {
      MessageQueue& sends = channel_of(messages_[notice.id]).first;
      expects(sends.front() == notice.id, "a receive from anyone that is open has left nothing that arrived");
      sends.remove(notice.id);
      std::erase(any_source_, receive);
      take(notice.id, receive);
    }
  }
  pump(source, receiver);
}

bool MessageMatcher::hold_back(std::int64_t send_seq, MessageId receive, Fate fate) {
  const Message& message = messages_[receive];
  if (!is_watching() || connections_->between(message.source, message.op.rank).empty()) {
    return false;
  }
  connections_->write(message.source, message.op.rank,
                      {.kind = Parcel::Kind::bytes,
                       .id = receive,
                       .seq = message.seq,
                       .tag = message.op.tag,
                       .fate = fate,
                       .known = message.known},
                      send_seq);
  pump(message.source, message.op.rank);
  return true;
}

// Checked again here, where all disciplines end: once paired, messages are never checked again.
void MessageMatcher::pair_up(MessageId send, MessageId receive) {
  expects(messages_[send].op.kind == OpKind::send, "the first of a pair is the send");
  expects(messages_[receive].op.kind == OpKind::recv, "the second of a pair is the receive");
  expects(messages_[send].phase == Message::Phase::pending, "a send is paired once");
  expects(messages_[receive].phase == Message::Phase::pending, "a receive is paired once");
  messages_[send].phase = Message::Phase::matched;
  messages_[send].partner = receive;
  messages_[receive].phase = Message::Phase::matched;
  messages_[receive].partner = send;
  const Op& op = messages_[send].op;
  if (is_watching() && connections_->watches(op.rank)) {
    connections_->permits(op.rank, op.root, op.tag).waiting.emplace_back(send, receive);
    release(op.rank, op.root, op.tag);
  } else {
    matched_.emplace_back(send, receive);
  }
}

// Usually they are sorted, because ranks run one after another. Where a ring closes, all but a few are.
void MessageMatcher::sort_matched() {
  constexpr std::ptrdiff_t few = 4;
  const auto sender = [this](const std::pair<MessageId, MessageId>& pair) { return place_of(pair.first); };
  auto next = std::ranges::is_sorted_until(matched_, {}, sender);
  if (matched_.end() - next > few) {
    std::ranges::sort(matched_, {}, sender);
    return;
  }
  for (; next != matched_.end(); ++next) {
    const auto place = std::ranges::upper_bound(matched_.begin(), next, sender(*next), {}, sender);
    std::rotate(place, next, next + 1);
  }
}

bool MessageMatcher::is_current(MessageId id, Rank rank, std::int64_t seq) const {
  return id < messages_.size() && messages_[id].op.rank == rank && messages_[id].seq == seq;
}

void MessageMatcher::forget(MessageId id) {
  expects(messages_[id].seq >= 0, "a message is forgotten once");
  messages_[id].seq = -1;  // no handle refers to it any more
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
  if (phase == Message::Phase::planned) {
    return forget(id);  // not in a queue yet
  }
  if (phase != Message::Phase::pending) {
    expects(phase == Message::Phase::stuck || phase == Message::Phase::failed,
            "a message on its way arrives");
    return;  // not in a queue any more
  }
  const Op& op = messages_[id].op;
  if (op.kind == OpKind::recv && op.root < 0) {
    std::erase(any_source_, id);
  } else {
    queue_of(messages_[id]).remove(id);
  }
  if (is_watching() && op.kind == OpKind::send) {
    connections_->take_back(op.rank, op.root, id);
    pump(op.rank, op.root);
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
  std::ranges::sort(ids, {}, [this](MessageId id) { return place_of(id); });
  return ids;
}

}  // namespace rollcall::check
