#include "tests/conformance/tape_replay.h"

#include <algorithm>
#include <utility>

namespace rollcall::conformance {
namespace {

using check::Channel;
using check::Message;
using check::MessageId;
using check::MessageMatcher;
using check::RankStatus;
using check::Slot;

constexpr Duration time_of_a_call = 1000;

}  // namespace

TapeReplay::TapeReplay(const OpTape& tape, std::string backend)
    : tape_(tape),
      backend_(std::move(backend)),
      queues_(backend_ == "nccl"),
      players_(tape.ranks.size()),
      status_(tape.ranks.size()),
      store_waits_(tape.ranks.size()) {
  for (const GroupMembers& group : tape.groups) {
    matchers_.emplace_back(group.size());
    messengers_.emplace_back();
    others_.emplace_back();
    groups_.push_back({&group, &matchers_.back()});
  }
  incidents_ = std::make_unique<check::IncidentLog>(groups_, tape.scopes);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t rank = 0; rank < players_.size(); ++rank) {
      moved = play(static_cast<Rank>(rank)) || moved;
    }
    moved = pair_messages() || moved || force_one();
  }
  for (std::size_t rank = 0; rank < players_.size(); ++rank) {
    end(static_cast<Rank>(rank));
  }
}

// As far as the rank gets. True when it did anything.
bool TapeReplay::play(Rank rank) {
  const std::deque<TapeEvent>& events = tape_.ranks[static_cast<std::size_t>(rank)].events;
  Player& self = player(rank);
  bool moved = post_ready(rank);
  while (self.next < events.size() && play_one(rank, events[self.next])) {
    ++self.next;
    self.inside = false;
    moved = true;
    post_ready(rank);
  }
  return moved;
}

// True when the rank gets past the event.
bool TapeReplay::play_one(Rank rank, const TapeEvent& event) {
  Player& self = player(rank);
  switch (event.kind) {
    case TapeEvent::Kind::issue:
      take(rank, event);
      return true;
    case TapeEvent::Kind::wait: {
      if (event.call < 0) {
        return true;
      }
      const auto index = static_cast<std::size_t>(event.call);
      const Call& call = self.calls[index];
      if (queues_) {
        self.held[call.op.stream.id].push_back(index);
        return true;
      }
      self.now = call.done ? std::max(self.now, call.at) : self.now;
      return call.done;
    }
    case TapeEvent::Kind::synchronize:
      for (std::size_t i = self.settled; i < self.calls.size(); ++i) {
        if (!self.calls[i].done) {
          return false;
        }
      }
      self.now = std::max(self.now, self.latest);
      return true;
    case TapeEvent::Kind::group_call:
      return enter_group_call(rank, event);
    case TapeEvent::Kind::store_call:
      if (event.returned && !event.want.empty() && event.got != event.want) {
        incidents_->store({self.now, rank, event.op, event.keys.front(), event.got, event.want});
      }
      return event.returned;
    case TapeEvent::Kind::compute:
      self.now += event.duration;
      return event.returned;
    case TapeEvent::Kind::observe:
      incidents_->observe(self.now, rank, event.observation);
      return true;
  }
  return true;
}

// Nobody gets any further by the rules here: a call whose members disagreed has ended as its backend has it. The tape
// says for whom.
bool TapeReplay::force_one() {
  for (const auto& messages : messengers_) {
    if (messages != nullptr) {
      messages->match_any_source();
    }
  }
  if (pair_messages()) {
    return true;
  }
  for (std::size_t rank = 0; rank < players_.size(); ++rank) {
    const std::deque<TapeEvent>& events = tape_.ranks[rank].events;
    Player& self = players_[rank];
    if (self.next < events.size() && events[self.next].returned) {
      ++self.next;
      self.inside = false;
      return true;
    }
  }
  return false;
}

void TapeReplay::take(Rank rank, const TapeEvent& event) {
  Player& self = player(rank);
  Call& call = self.calls.emplace_back();
  call.op = event.op;
  call.batch = event.batch;
  call.at = self.now;
  call.gate = self.held[call.op.stream.id];
  if (is_point_to_point(call.op.kind)) {
    call.message = messages_of(call.op.group).plan(call.op);
    call.seq = messages_of(call.op.group).at(call.message).seq;
    posters_[{call.op.group, call.message}] = {rank, self.calls.size() - 1};
  }
}

// What its stream waits for is complete, and so is its turn on its group.
bool TapeReplay::is_ready(const Player& self, std::size_t index) const {
  const Call& call = self.calls[index];
  if (!std::ranges::all_of(call.gate, [&](std::size_t before) { return self.calls[before].done; })) {
    return false;
  }
  for (std::size_t before = self.settled; before < index; ++before) {
    const Call& earlier = self.calls[before];
    const bool same_queue = earlier.op.group == call.op.group &&
                            is_point_to_point(earlier.op.kind) == is_point_to_point(call.op.kind);
    if (same_queue && !earlier.posted) {
      return false;
    }
  }
  return true;
}

bool TapeReplay::post_ready(Rank rank) {
  Player& self = player(rank);
  bool moved = false;
  for (; self.settled < self.calls.size() && self.calls[self.settled].done; ++self.settled) {
    self.latest = std::max(self.latest, self.calls[self.settled].at);
  }
  for (std::size_t i = self.settled; i < self.calls.size(); ++i) {
    Call& call = self.calls[i];
    if (call.posted || !is_ready(self, i)) {
      continue;
    }
    moved = true;
    for (const std::size_t before : call.gate) {
      call.at = std::max(call.at, self.calls[before].at);
    }
    call.posted = true;
    if (!is_point_to_point(call.op.kind)) {
      post_collective(rank, i);
      continue;
    }
    MessageMatcher& messages = messages_of(call.op.group);
    const bool goes_on = call.batch >= 0 && i > 0 && self.calls[i - 1].batch == call.batch;
    if (call.batch >= 0 && !goes_on) {
      messages.begin_batch();
    }
    messages.post(call.message, call.at);
    if (call.batch >= 0 && (i + 1 == self.calls.size() || self.calls[i + 1].batch != call.batch)) {
      messages.end_batch();
    }
  }
  return moved;
}

void TapeReplay::post_collective(Rank rank, std::size_t index) {
  Call& call = player(rank).calls[index];
  const Slot& slot = matchers_[call.op.group].arrive(call.op);
  call.seq = slot.seq;
  slots_[{call.op.group, slot.seq}].emplace_back(rank, index);
  if (slot.differs) {
    incidents_->suspect(call.at, call.op.group, slot.seq);
  }
  if (slot.phase == Slot::Phase::full) {
    meet(call.op.group, slot.seq);
  }
}

void TapeReplay::meet(GroupId group, std::int64_t seq) {
  Slot& slot = *matchers_[group].find(seq);
  const std::vector<CallIndex>& members = slots_[{group, seq}];
  Time at = 0;
  for (const auto& [rank, index] : members) {
    at = std::max(at, player(rank).calls[index].at);
  }
  incidents_->inspect_full(at, group, slot);
  if (slot.differs) {
    return;
  }
  for (const auto& [rank, index] : members) {
    finish(player(rank).calls[index], at + time_of_a_call);
  }
  slot.phase = Slot::Phase::done;
  matchers_[group].retire();
}

bool TapeReplay::pair_messages() {
  bool moved = false;
  for (std::size_t group = 0; group < messengers_.size(); ++group) {
    if (messengers_[group] == nullptr) {
      continue;
    }
    MessageMatcher& messages = *messengers_[group];
    messages.sort_matched();
    const auto matched = std::exchange(messages.matched(), {});
    for (const auto& [send, receive] : matched) {
      Message* ends[] = {&messages.at(send), &messages.at(receive)};
      const Time at = std::max(ends[0]->posted, ends[1]->posted);
      const bool fit = ends[0]->op.numel == ends[1]->op.numel && ends[0]->op.dtype == ends[1]->op.dtype;
      if (!fit) {
        incidents_->message(at, *ends[0], *ends[1]);
      }
      for (const MessageId id : {send, receive}) {
        messages.at(id).phase = fit ? Message::Phase::done : Message::Phase::stuck;
        const auto [rank, index] = posters_.at({static_cast<GroupId>(group), id});
        if (fit) {
          finish(player(rank).calls[index], at + time_of_a_call);
        }
      }
      moved = true;
    }
  }
  return moved;
}

void TapeReplay::finish(Call& call, Time at) {
  call.done = true;
  call.at = at;
}

bool TapeReplay::enter_group_call(Rank rank, const TapeEvent& event) {
  if (event.op.kind == OpKind::destroy_process_group && !queues_) {
    return true;  // every rank closes its own side
  }
  Player& self = player(rank);
  const Channel channel = check::channel_of(event.op.kind);
  check::GroupMatcher& matcher = others_of(event.op.group, channel);
  if (!self.inside) {
    self.inside = true;
    Op op = event.op;
    op.numel = event.ranks.empty() ? op.numel : number_of(event.ranks, op.group);
    Slot& slot = matcher.arrive(op);
    if (slot.differs) {
      incidents_->suspect(self.now, op.group, slot.seq, channel);
    }
    if (slot.phase == Slot::Phase::full) {
      incidents_->inspect_full(self.now, op.group, slot);
      if (!slot.differs) {
        slot.phase = Slot::Phase::done;
        matcher.retire();
      }
    }
  }
  return matcher.find(matcher.calls_of(event.op.rank) - 1) == nullptr;
}

// ---- The end ----

void TapeReplay::end(Rank rank) {
  const RankTape& tape = tape_.ranks[static_cast<std::size_t>(rank)];
  const Player& self = player(rank);
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.inputs = tape.inputs;
  if (self.next < tape.events.size()) {
    wait_in_event(rank, tape.events[self.next]);
    return;
  }
  if (tape.end == RankTape::End::raised) {
    status.state = RankStatus::State::raised;
    status.exception = static_cast<std::int32_t>(exceptions_.size());
    exceptions_.push_back({tape.type, tape.text});
    return;
  }
  status.state = RankStatus::State::finished;
  for (const auto& [stream, held] :
       self.held) {  // what it has launched and waited for, its process still runs
    for (const std::size_t index : held) {
      if (!self.calls[index].done) {
        return wait_in(rank, self.calls[index]);
      }
    }
  }
}

void TapeReplay::wait_in(Rank rank, const Call& call) {
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = RankStatus::State::waiting;
  status.group = call.op.group;
  status.group_rank = call.op.rank;
  status.seq = call.seq;
  status.message = call.message;
}

void TapeReplay::wait_in_event(Rank rank, const TapeEvent& event) {
  const Player& self = player(rank);
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = RankStatus::State::waiting;
  status.group = event.op.group;
  status.group_rank = event.op.rank;
  if (event.kind == TapeEvent::Kind::wait) {
    wait_in(rank, self.calls[static_cast<std::size_t>(event.call)]);
  } else if (event.kind == TapeEvent::Kind::synchronize) {
    wait_in(rank, *std::ranges::find_if(self.calls, [](const Call& call) { return !call.done; }));
  } else if (event.kind == TapeEvent::Kind::group_call) {
    status.channel = check::channel_of(event.op.kind);
    status.seq = others_of(event.op.group, status.channel).calls_of(event.op.rank) - 1;
  } else if (event.kind == TapeEvent::Kind::store_call) {
    status.channel = Channel::store;
    status.seq = rank;
    store_waits_[static_cast<std::size_t>(rank)] = {event.op, event.keys};
  } else {
    status.state = RankStatus::State::running;
  }
}

check::Evidence TapeReplay::evidence() {
  check::Evidence evidence;
  evidence.backend = backend_;
  evidence.groups = groups_;
  evidence.ranks = status_;
  evidence.exceptions = exceptions_;
  evidence.scopes = &tape_.scopes;
  evidence.store_waits = store_waits_;
  evidence.rank_lists = rank_lists_;
  incidents_->add_to(evidence);
  return evidence;
}

check::MessageMatcher& TapeReplay::messages_of(GroupId group) {
  std::unique_ptr<MessageMatcher>& messages = messengers_[group];
  if (messages == nullptr) {
    messages = std::make_unique<MessageMatcher>(
        queues_ ? MessageMatcher::Discipline::ordered : MessageMatcher::Discipline::tagged,
        tape_.groups[group].size());
    groups_[group].messages = messages.get();
  }
  return *messages;
}

check::GroupMatcher& TapeReplay::others_of(GroupId group, Channel channel) {
  auto& matcher = others_[group][static_cast<std::size_t>(channel)];
  if (matcher == nullptr) {
    matcher = std::make_unique<check::GroupMatcher>(tape_.groups[group].size());
    groups_[group].others[static_cast<std::size_t>(channel)] = matcher.get();
  }
  return *matcher;
}

// Equal lists have one number. An empty one is everybody.
std::int64_t TapeReplay::number_of(std::vector<RankList> lists, GroupId parent) {
  for (RankList& ranks : lists) {
    if (ranks.empty()) {
      ranks = tape_.groups[parent].ranks;
    }
  }
  const auto known = std::ranges::find(rank_lists_, lists);
  if (known == rank_lists_.end()) {
    rank_lists_.push_back(std::move(lists));
    return static_cast<std::int64_t>(rank_lists_.size()) - 1;
  }
  return known - rank_lists_.begin();
}

}  // namespace rollcall::conformance
