// The time of a replayed tape: which rank moves next, and which rank leaves a call that by the rules never ends.

#include <algorithm>
#include <utility>

#include "tests/conformance/tape_replay.h"

namespace rollcall::conformance {
namespace {

using check::Channel;
using check::Message;
using check::MessageId;
using check::MessageMatcher;
using check::Slot;
using End = TapeEvent::End;
using Kind = TapeEvent::Kind;

}  // namespace

void TapeReplay::play_all() {
  Time now = 0;
  while (true) {
    settle(now);
    if (let_die(now)) {
      continue;
    }
    if (is_stuck(now)) {
      return;
    }
    if (let_one_go(now)) {
      continue;
    }
    const std::optional<Time> next = next_time(now);
    if (!next) {
      return;
    }
    now = *next;
  }
}

// Replays until no rank can move any further at this time.
void TapeReplay::settle(Time now) {
  bool moved = true;
  while (moved) {
    moved = false;
    for (Rank rank = 0; rank < world_size(); ++rank) {
      moved = play(rank, now) || moved;
    }
    moved = pair_messages() || moved;
    for (const auto& messages : messengers_) {
      if (!moved && messages != nullptr) {
        messages->settle_arrivals();
      }
    }
    moved = pair_messages() || moved;
  }
}

// Replays the rank as far as possible. True if it did anything.
bool TapeReplay::play(Rank rank, Time now) {
  const std::deque<TapeEvent>& events = events_of(rank);
  Player& self = player(rank);
  bool moved = start_calls(rank);
  while (self.next < events.size() && events[self.next].at <= now && play_one(rank, events[self.next], now)) {
    ++self.next;
    self.entered = false;
    moved = true;
    start_calls(rank);
  }
  return moved;
}

// Lets ranks die whose processes die now. False if there are none.
bool TapeReplay::let_die(Time now) {
  bool anybody = false;
  for (Rank rank = 0; rank < world_size(); ++rank) {
    const RankTape& tape = tape_.ranks[static_cast<std::size_t>(rank)];
    const Player& self = player(rank);
    const bool at_end = self.next == tape.events.size() ||
                        (self.next + 1 == tape.events.size() && tape.events.back().until <= now);
    if (!self.dead && tape.end == RankTape::End::died && at_end) {
      die(rank);
      anybody = true;
    }
  }
  return anybody;
}

// Returns the next time at which a rank does something, or leaves a call.
std::optional<Time> TapeReplay::next_time(Time now) const {
  std::optional<Time> next;
  for (Rank rank = 0; rank < world_size(); ++rank) {
    const Player& self = players_[static_cast<std::size_t>(rank)];
    const std::deque<TapeEvent>& events = events_of(rank);
    if (self.dead || self.next == events.size()) {
      continue;
    }
    const TapeEvent& event = events[self.next];
    const bool dies = tape_.ranks[static_cast<std::size_t>(rank)].end == RankTape::End::died;
    const Time at = event.at > now ? event.at : event.end != End::none || dies ? event.until : 0;
    if (at > now) {
      next = std::min(next.value_or(at), at);
    }
  }
  return next;
}

// True if it is proven that nothing moves: the rest of the tape is how the backend ended the run. A call that itself
// says how long it may take can still move.
bool TapeReplay::is_stuck(Time now) const {
  for (Rank rank = 0; rank < world_size(); ++rank) {
    const Player& self = players_[static_cast<std::size_t>(rank)];
    if (self.dead || self.next == events_of(rank).size()) {
      continue;
    }
    const TapeEvent& event = events_of(rank)[self.next];
    const bool moves = event.at > now || event.end == End::returned || event.kind == Kind::compute;
    if (moves || (event.end == End::raised && event.limited)) {
      return false;
    }
  }
  return true;
}

// Lets a rank continue that is stuck by the rules here, but has continued by now according to the tape. False if there
// is none.
bool TapeReplay::let_one_go(Time now) {
  const auto key = [this](Rank rank) {
    const TapeEvent& event = events_of(rank)[player(rank).next];
    return std::pair(event.until, event.end == End::raised);
  };
  Rank first = -1;
  for (Rank rank = 0; rank < world_size(); ++rank) {
    const Player& self = player(rank);
    const bool is_over = self.dead || self.next == events_of(rank).size();
    if (!is_over && events_of(rank)[self.next].end != End::none && events_of(rank)[self.next].until <= now &&
        (first < 0 || key(rank) < key(first))) {
      first = rank;
    }
  }
  if (first < 0) {
    return false;
  }
  let_go(first, events_of(first)[player(first).next]);
  return true;
}

void TapeReplay::let_go(Rank rank, const TapeEvent& event) {
  Player& self = player(rank);
  if (event.end == End::raised) {
    note_timeout(rank, event);
  }
  for (const std::int64_t call : event.kind == Kind::wait ? event.calls : std::vector<std::int64_t>()) {
    const auto number = static_cast<Number>(call);
    const TapeDevice::Call& waited = self.device.call(number);
    if (event.end == End::returned) {
      self.device.finish_up_to(number, event.until);
    } else if (Slot* slot = is_point_to_point(waited.op.kind) ? nullptr
                                                              : matchers_[waited.op.group].find(waited.seq)) {
      slot->given_up = true;
    }
  }
  ++self.next;
  self.entered = false;
}

// Notes that other ranks had not come in time. Whether they come later will be seen.
void TapeReplay::note_timeout(Rank rank, const TapeEvent& event) {
  wait_in_event(rank, event);
  const check::RankStatus status = status_[static_cast<std::size_t>(rank)];
  if (timeout_ || status.state != check::RankStatus::State::waiting || status.in_message() ||
      status.channel == Channel::store || status.group_rank < 0) {
    return;
  }
  const check::GroupMatcher& matcher = *groups_[status.group].calls(status.channel);
  const Slot* slot = matcher.find(status.seq);
  check::TimeoutIncident incident;
  for (Rank member = 0; slot != nullptr && member < matcher.size(); ++member) {
    if (!slot->has(member)) {
      incident.late.push_back(tape_.groups[status.group].ranks[static_cast<std::size_t>(member)]);
    }
  }
  if (incident.late.empty()) {
    return;
  }
  for (Rank other = 0; other < world_size(); ++other) {
    if (player(other).dead || player(other).next == events_of(other).size()) {
      continue;
    }
    wait_in_event(other, events_of(other)[player(other).next]);
    const check::RankStatus& that = status_[static_cast<std::size_t>(other)];
    if (that.state == check::RankStatus::State::waiting && !that.in_message() &&
        that.channel == status.channel && that.group == status.group && that.seq == status.seq) {
      incident.waiting.push_back(other);
    }
  }
  incident.at = event.until;
  incident.op = matcher.op_of(*slot, status.group_rank);
  incident.seq = status.seq;
  incident.limit = event.until - event.at;
  incident.came.assign(incident.late.size(), -1);
  timeout_ = std::move(incident);
}

void TapeReplay::note_late_call(const Op& op, std::int64_t seq, Time at) {
  if (!timeout_ || is_point_to_point(op.kind) || timeout_->op.group != op.group || timeout_->seq != seq ||
      check::channel_of(timeout_->op.kind) != check::channel_of(op.kind)) {
    return;
  }
  const Rank rank = tape_.groups[op.group].ranks[static_cast<std::size_t>(op.rank)];
  const auto found = std::ranges::find(timeout_->late, rank);
  if (found != timeout_->late.end()) {
    timeout_->came[static_cast<std::size_t>(found - timeout_->late.begin())] = at;
  }
}

// Ranks that come from now on wait for the dead rank; calls that have already met it stay complete.
void TapeReplay::die(Rank rank) {
  player(rank).dead = true;
  for (const GroupMembers& group : tape_.groups) {
    const Rank member = group.rank_of(rank);
    if (member < 0) {
      continue;
    }
    for (std::int64_t seq = matchers_[group.id].first_live(); seq < matchers_[group.id].end(); ++seq) {
      Slot& slot = *matchers_[group.id].find(seq);
      std::vector<CallOfRank>& come = slots_[{group.id, seq}];
      const auto own = std::ranges::find(come, rank, &CallOfRank::first);
      if (slot.phase == Slot::Phase::collecting && own != come.end() &&
          !player(rank).device.call(own->second).done) {
        incidents_->inspect_withdrawn(group.id, slot, member);
        matchers_[group.id].withdraw(slot, member);
        come.erase(own);
      }
    }
    if (MessageMatcher* messages = messengers_[group.id].get()) {
      for (const MessageId id : messages->pending()) {
        if (messages->at(id).op.rank == member && messages->at(id).phase == Message::Phase::pending) {
          messages->withdraw(id);
        }
      }
    }
  }
}

}  // namespace rollcall::conformance
