// The state of a message matcher, for comparing states of runs.

#include <algorithm>

#include "sim/match/message_matcher.h"

namespace rollcall::check {
namespace {

constexpr Rank no_more = -2;  // ends a list

}  // namespace

void MessageMatcher::gather_notices(LiveNotices& notices) const {
  if (!is_watching()) {
    return;
  }
  for (const auto& [ends, parcels] : connections_->all()) {
    for (const Parcel& parcel : parcels) {
      if (parcel.kind == Parcel::Kind::notice) {
        notices.add(*parcel.known);
      }
    }
  }
}

bool MessageMatcher::has_open(Rank rank) const {
  return std::ranges::any_of(messages_, [rank](const Message& message) {
    return message.seq >= 0 && message.op.rank == rank && message.phase != Message::Phase::done;
  });
}

// True if it has arrived and no receive has taken it.
bool MessageMatcher::is_in_mailbox(const Message& message) const {
  return message.op.kind == OpKind::send && message.phase == Message::Phase::pending && is_watching() &&
         connections_->watches(message.op.root) && message.arrived != not_arrived;
}

// The arguments of a message are left out: its rank has made the call, and is distinguished by what it has learned.
// Messages that are done are left out, too: only the rank that has just received one asks for its source.
void MessageMatcher::write_state(Encoder& state, const LiveNotices& notices) const {
  std::vector<const Message*> open;
  for (const Message& message : messages_) {
    if (message.seq >= 0 && message.phase != Message::Phase::done) {
      open.push_back(&message);
    }
  }
  const auto by_rank = [](const Message* message) { return std::pair(message->op.rank, message->seq); };
  std::ranges::sort(open, {}, by_rank);
  // The position of a message in its mailbox, by arrival. Not needed for other messages.
  const auto place_of = [&](const Message& message) {
    return std::ranges::count_if(open, [&](const Message* other) {
      return is_in_mailbox(*other) && other->op.root == message.op.root && other->op.tag == message.op.tag &&
             other->arrived < message.arrived;
    });
  };
  const auto write_name = [&](MessageId id) {
    state(id == no_message ? Rank{-1} : messages_[id].op.rank);
    state(id == no_message ? std::int64_t{-1} : messages_[id].seq);
  };
  state(next_);
  state(static_cast<std::uint32_t>(open.size()));
  for (const Message* message : open) {
    state(message->op.rank, message->seq, message->phase, message->waiting);
    write_name(message->partner);
    state(message->source, message->sent_bytes);
    state(is_in_mailbox(*message) ? place_of(*message) : -1);
    if (message->known != nullptr) {
      notices.write(state, *message->known);
    }
  }
  state(static_cast<std::uint32_t>(asked_anyone_.size()));
  for (const auto& [receiver, tag] : asked_anyone_) {
    state(receiver, tag);
  }
  state(is_watching());
  if (!is_watching()) {
    return;
  }
  for (const auto& [mailbox, moment] : mailboxes_) {
    state(mailbox.first, mailbox.second);
    notices.write(state, moment);
  }
  state(no_more);
  for (const auto& [ends, parcels] : connections_->all()) {
    if (parcels.empty()) {
      continue;
    }
    state(ends.first, ends.second);
    state(static_cast<std::uint32_t>(parcels.size()));
    for (const Parcel& parcel : parcels) {
      state(parcel.kind, parcel.seq, parcel.tag, parcel.fate);
      state(parcel.kind == Parcel::Kind::notice && is_matched(parcel, ends.first));
      notices.write(state, *parcel.known);
    }
  }
  state(no_more);
  for (const auto& [key, permits] : connections_->all_permits()) {
    if (permits.left == 0 && permits.waiting.empty()) {
      continue;
    }
    state(key.first, key.second.first, key.second.second, permits.left);
    state(static_cast<std::uint32_t>(permits.waiting.size()));
    for (const auto& [send, receive] : permits.waiting) {
      write_name(send);
      write_name(receive);
    }
  }
}

}  // namespace rollcall::check
