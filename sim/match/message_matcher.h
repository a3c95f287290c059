#pragma once

// The message matcher: which send meets which receive, inside one group. Pure, like the matcher of collectives.
//
// Three disciplines, those of the libraries:
//   tagged   Gloo: first in, first out per (source, destination, tag); a receive may name no source.
//            What it takes is decided when a message's notice arrives or when it is posted, whichever is later, and
//            never again: a receive that names the source, and is posted after that, gets the next message.
//   ordered  NCCL: everything between two ranks is one queue per side, and only its head is active.
//            The members of a batch are active together.
//   apart    The same where NCCL makes communicators at their first use: messages of batches use the group's,
//            all others one that only the two ranks have (ProcessGroupNCCL.cpp, pointToPoint).

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/c10d/backend_traits.h"
#include "sim/c10d/op.h"
#include "sim/match/connections.h"
#include "sim/match/moment.h"

namespace rollcall::check {

// One posted send or receive, until it is done.
struct Message {
  enum class Phase : std::uint8_t {
    planned,  // its rank has called, but its GPU has not reached it
    pending,  // its partner has not arrived
    matched,  // its partner has arrived; not completed yet
    stuck,    // its partner has arrived, but the two do not fit, and nothing will ever move
    done,     // completed; remembered only while its source may still be asked for
    failed,   // the rank's process dies of it
  };

  Op op;        // op.rank and op.root are inside the group; root -1: from anyone
  Tensor kept;  // the caller may drop its tensor: it does not wait, or only its stream does
  Time posted = 0;
  std::int64_t seq = 0;  // of this rank on this group, from 0, sends and receives together
  Phase phase = Phase::pending;
  bool waiting = false;  // its rank is blocked in it
  bool in_batch = false;
  std::uint32_t batch = 0;
  MessageId partner = no_message;
  std::uint64_t arrived = 0;              // tagged, a send: when its notice reached the receiver
  std::shared_ptr<const Moment> known{};  // if any rank is watched: when posted; a receive: when bound
  Rank source = -1;                       // done, a receive: the sender, inside the group
  std::int64_t sent_bytes = 0;            // failed: the size that was too large for this receive
};

// A queue whose memory is reused. The default std::deque takes half a kilobyte before its first element,
// and there is one queue per pair of ranks.
class MessageQueue {
 public:
  bool empty() const { return head_ == ids_.size(); }
  MessageId front() const { return ids_[head_]; }
  std::span<const MessageId> all() const { return std::span(ids_).subspan(head_); }
  void push(MessageId id) { ids_.push_back(id); }
  void remove(MessageId id);  // usually the front

 private:
  std::vector<MessageId> ids_;
  std::size_t head_ = 0;
};

class MessageMatcher {
 public:
  enum class Discipline : std::uint8_t { tagged, ordered, apart };

  static Discipline usual_on(const BackendTraits& backend) {
    return backend.has_tags ? Discipline::tagged : Discipline::ordered;
  }

  MessageMatcher(Discipline discipline, Rank group_size)
      : discipline_(discipline),
        group_size_(group_size),
        next_(static_cast<std::size_t>(group_size), 0),
        recent_(2 * static_cast<std::size_t>(group_size), 0) {}

  // A new message of op.rank, in two steps, because calls may be queued first: its number is taken now, its place in
  // the queues when it is posted. It is matched then if its partner is there. Ids are reused once forgotten.
  // If any rank is watched, the caller sets what is known before the message is posted.
  MessageId plan(const Op& op);
  void post(MessageId id, Time now);
  Rank group_size() const { return group_size_; }
  bool keeps_batches_apart() const { return discipline_ == Discipline::apart; }
  bool is_ordered() const { return discipline_ != Discipline::tagged; }

  // Messages posted between the two calls progress together (ordered discipline).
  void begin_batch();
  void end_batch() { in_batch_ = false; }

  // Whether the message's ranks have used their queue before: the other one has not (alone), the other one has but not
  // this one (now), or both have (before). Not for the tagged discipline.
  enum class Meeting : std::uint8_t { alone, now, before };
  Meeting meet(MessageId id);

  // Called when every rank is at rest, so that all messages sent have arrived: in the order of their senders, because
  // until then the order of execution would decide. Not at ranks that are watched.
  void settle_arrivals();
  // True if any rank has received from anyone.
  bool anyone_receives() const { return !asked_anyone_.empty(); }

  // Called before the first message: the caller then decides when each message reaches this rank (tagged discipline).
  void watch(Rank receiver);
  bool is_watching() const { return connections_ != nullptr; }
  // True for a receive that names its source, of a rank that has received from anyone with its tag: it matters whether
  // it is posted before or after a message arrives.
  bool races_with_arrivals(const Op& receive) const;

  // A message whose notice has not arrived at a watched rank.
  struct Arrival {
    Rank source;
    Rank receiver;
    std::int32_t tag;
    std::int64_t seq;  // of the send
    bool ready;        // it is the next of its connection, and its arrival could be noticed
    Time since;
  };
  // For each connection the next notice, and the first of every other tag.
  std::vector<Arrival> arrivals() const;
  // Lets the next notice of a connection arrive.
  void let_arrive(Rank source, Rank receiver);
  // Called when the bytes for a receive have been written. True if they are behind something that has not arrived: the
  // receive gets `fate` once they have.
  bool hold_back(std::int64_t send_seq, MessageId receive, Fate fate);
  // The receives whose bytes have arrived since the caller last cleared them.
  std::vector<std::pair<MessageId, Fate>>& arrived() { return arrived_; }

  // The (send, receive) pairs matched since the caller last cleared them; sorted by the sends' (rank, seq)
  // after sort_matched.
  std::vector<std::pair<MessageId, MessageId>>& matched() { return matched_; }
  void sort_matched();

  Message& at(MessageId id) { return messages_[id]; }
  const Message& at(MessageId id) const { return messages_[id]; }
  // True while `id` is the message that was posted as number `seq` of `rank`.
  bool is_current(MessageId id, Rank rank, std::int64_t seq) const;
  // Later messages reuse its memory.
  void forget(MessageId id);
  // Withdraws a planned or pending message, for a rank whose wait for it failed.
  void withdraw(MessageId id);

  // For comparing states: message_state.cc.
  void gather_notices(LiveNotices& notices) const;
  void write_state(Encoder& state, const LiveNotices& notices) const;
  bool has_open(Rank rank) const;
  std::int64_t messages_of(Rank rank) const { return next_[static_cast<std::size_t>(rank)]; }

  // Every message that has not completed and will not on its own, by (rank, seq).
  std::vector<MessageId> pending() const;

 private:
  // Source, destination and tag; or the lower rank, the higher one, and 1 for batches that are kept apart.
  struct Key {
    Rank first;
    Rank second;
    std::int32_t tag;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Channel {
    Key key;
    MessageQueue first;       // tagged: pending sends. ordered: the lower rank's messages
    MessageQueue second;      // tagged: pending receives. ordered: the higher rank's
    bool first_came = false;  // see meet()
    bool second_came = false;
  };

  void post_tagged(MessageId id);
  void post_ordered(MessageId id);
  void post_any_source(MessageId id);
  bool take_arrived(MessageId receive, std::uint64_t before);
  void bind(MessageId receive, Rank source);
  void take(MessageId send, MessageId receive);
  void release(Rank sender, Rank receiver, std::int32_t tag);
  void pump(Rank from, Rank to);
  bool is_matched(const Parcel& notice, Rank from) const;
  bool is_in_mailbox(const Message& message) const;
  std::set<Rank> awaited_connections(Rank to) const;
  MessageId open_to_anyone(Rank receiver, std::int32_t tag) const;
  bool has_asked_anyone(Rank receiver, std::int32_t tag) const {
    return asked_anyone_.contains({receiver, tag});
  }
  bool match_heads(Channel& channel);
  MessageId active(const MessageQueue& queue, OpKind kind) const;
  void pair_up(MessageId send, MessageId receive);

  // The order of messages that must not depend on which rank ran first.
  std::pair<Rank, std::int64_t> place_of(MessageId id) const {
    return {messages_[id].op.rank, messages_[id].seq};
  }
  Key key_of(const Message& message) const;
  MessageQueue& queue_of(const Message& message);
  Channel& channel_of(const Message& message);
  [[gnu::noinline]] std::uint32_t look_up(const Key& key);

  Discipline discipline_;
  Rank group_size_;
  std::vector<std::int64_t> next_;  // by rank: the number of its next message
  std::vector<Message> messages_;
  std::vector<MessageId> free_;
  std::vector<Channel> channels_;                                // never shrinks: indexes are kept
  std::unordered_map<Key, std::uint32_t, KeyHash> channel_ids_;  // looked up, never iterated
  std::vector<std::uint32_t> recent_;  // by rank and kind: its last channel, which it usually uses again
  std::vector<MessageId> any_source_;  // pending receives that name no source
  std::set<std::pair<Rank, std::int32_t>>
      asked_anyone_;          // the ranks that have ever received from anyone, and with which tag
  std::uint64_t moment_ = 0;  // messages that arrived at an earlier one are there before anything posted now
  std::unique_ptr<Connections> connections_;  // null unless a rank is watched
  std::map<std::pair<Rank, std::int32_t>, Moment>
      mailboxes_;  // by receiver and tag: what the messages that arrived there knew
  std::vector<std::pair<MessageId, MessageId>> matched_;
  std::vector<std::pair<MessageId, Fate>> arrived_;
  std::uint32_t batch_ = 0;
  bool in_batch_ = false;
};

}  // namespace rollcall::check
