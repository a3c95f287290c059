#include "tests/conformance/tape_replay.h"

#include <algorithm>
#include <utility>

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

TapeReplay::TapeReplay(const OpTape& tape, TapeMachine machine)
    : tape_(tape),
      machine_(std::move(machine)),
      queues_(machine_.backend == "nccl"),
      status_(tape.ranks.size()),
      store_waits_(tape.ranks.size()) {
  for (std::size_t rank = 0; rank < tape.ranks.size(); ++rank) {
    players_.push_back({0, false, false, TapeDevice(queues_, machine_.comm_slots)});
    if (const RankTape& own = tape.ranks[rank]; own.end == RankTape::End::died) {
      players_.back().device.end_with(own.completed);
    }
  }
  for (const GroupMembers& group : tape.groups) {
    matchers_.emplace_back(group.size());
    messengers_.emplace_back();
    others_.emplace_back();
    groups_.push_back({&group, &matchers_.back()});
  }
  incidents_ = std::make_unique<check::IncidentLog>(groups_, tape.scopes);
  play_all();
  for (Rank rank = 0; rank < world_size(); ++rank) {
    end(rank);
  }
  find_shared_gpus();
  find_leaks();
}

// True if the rank gets past the event.
bool TapeReplay::play_one(Rank rank, const TapeEvent& event, Time now) {
  Player& self = player(rank);
  switch (event.kind) {
    case Kind::issue:
      if (event.refused) {
        refuse(rank, event);
        return true;
      }
      if (!std::exchange(self.entered, true)) {
        take(rank, event);
      }
      return event.end == End::returned || (event.end == End::raised && is_through(rank));
    case Kind::record:
      self.device.record(event.point);
      return true;
    case Kind::stream_wait:
      self.device.hold(event.stream, event.point);
      return true;
    case Kind::wait:
    case Kind::wait_event:
    case Kind::wait_device:
    case Kind::wait_tensor:
      return has_waited(self, event);
    case Kind::group_call:
      return enter_group_call(rank, event);
    case Kind::store_call:
      if (event.end == End::none || event.until > now) {
        return false;
      }
      if (!event.want.empty() && event.got != event.want) {
        incidents_->store({event.until, rank, event.op, event.keys.front(), event.got, event.want});
      }
      if (event.sets && event.end == End::returned) {
        const auto [setter, is_new] = key_setters_.try_emplace(event.keys.front(), rank);
        setter->second = is_new || setter->second == rank ? rank : check::several_set;
      }
      return true;
    case Kind::compute:
      return event.end != End::none && event.until <= now;
    case Kind::observe:
      incidents_->observe(event.at, rank, event.observation);
      return true;
  }
  return true;
}

// True if a call that blocked its host is complete, because all ranks have made it.
bool TapeReplay::is_through(Rank rank) {
  start_calls(rank);
  const TapeDevice& device = player(rank).device;
  return device.call(device.count() - 1).done;
}

bool TapeReplay::has_waited(Player& self, const TapeEvent& event) {
  const auto is_done = [&self](std::int64_t call) {
    return self.device.call(static_cast<Number>(call)).done;
  };
  if (event.kind == Kind::wait_event) {
    return !queues_ || self.device.is_over(event.point);
  }
  if (event.kind == Kind::wait_device) {
    return !queues_ || self.device.is_idle();
  }
  if (event.kind == Kind::wait_tensor) {
    return !queues_ || std::ranges::all_of(event.calls, is_done);
  }
  const bool on_host = !queues_ || event.on_host || event.calls.empty() ||
                       self.device.call(static_cast<Number>(event.calls.front())).op.kind == OpKind::barrier;
  if (!on_host) {
    self.device.hold(event.stream, static_cast<Number>(event.calls.front()));
    return true;
  }
  return event.calls.empty() || std::ranges::any_of(event.calls, is_done);
}

// A refused call: its tensor is on a device that the group does not accept, or the call comes too late.
void TapeReplay::refuse(Rank rank, const TapeEvent& event) {
  const Op& op = event.op;
  note_late_call(op, matchers_[op.group].calls_of(op.rank), event.at);
  check::DeviceIncident incident;
  incident.at = event.at;
  incident.seq = player(rank).device.launched(op.group);
  incident.ranks = {rank};
  incident.op = op;
  const auto before = devices_.find({op.group, rank});
  if (!queues_ || op.malformed) {
    return;
  }
  if (op.device.type != DeviceType::cuda) {
    incidents_->device(incident);
  } else if (before == devices_.end()) {
    refused_.push_back(incident);
  } else if (before->second != op.device) {
    incident.kind = FindingKind::stray_device;
    incident.expected = before->second;
    incidents_->device(incident);
  }
}

void TapeReplay::take(Rank rank, const TapeEvent& event) {
  devices_.try_emplace({event.op.group, rank}, event.op.device);
  Player& self = player(rank);
  const Number number = self.device.take(event.op, event.batch, event.at);
  if (!is_point_to_point(event.op.kind)) {
    return;
  }
  MessageMatcher& messages = messages_of(event.op.group);
  if (batch_ != std::pair(rank, event.batch)) {
    std::ranges::for_each(batched_, [](MessageMatcher* each) { each->end_batch(); });
    batched_.clear();
    batch_ = {rank, event.batch};
  }
  if (event.batch >= 0 && std::ranges::count(batched_, &messages) == 0) {
    messages.begin_batch();
    batched_.push_back(&messages);
  }
  TapeDevice::Call& call = self.device.call(number);
  call.message = messages.plan(event.op);
  call.seq = messages.at(call.message).seq;
  posters_[{event.op.group, call.message}] = {rank, number};
}

bool TapeReplay::start_calls(Rank rank) {
  TapeDevice& device = player(rank).device;
  bool moved = false;
  while (const std::optional<Number> number = player(rank).dead ? std::nullopt : device.start()) {
    moved = true;
    const TapeDevice::Call& call = device.call(*number);
    if (is_point_to_point(call.op.kind)) {
      messages_of(call.op.group).post(call.message, call.at);
    } else {
      start_collective(rank, *number);
    }
  }
  return moved;
}

void TapeReplay::start_collective(Rank rank, Number number) {
  TapeDevice::Call& call = player(rank).device.call(number);
  const Slot& slot = matchers_[call.op.group].arrive(call.op);
  call.seq = slot.seq;
  note_late_call(call.op, slot.seq, call.at);
  slots_[{call.op.group, slot.seq}].emplace_back(rank, number);
  if (slot.differs) {
    incidents_->suspect(call.at, call.op.group, slot.seq);
  }
  if (slot.phase == Slot::Phase::full) {
    meet(call.op.group, slot.seq);
  }
}

void TapeReplay::meet(GroupId group, std::int64_t seq) {
  Slot& slot = *matchers_[group].find(seq);
  const std::vector<CallOfRank>& members = slots_[{group, seq}];
  Time at = 0;
  for (const auto& [rank, number] : members) {
    at = std::max(at, player(rank).device.call(number).at);
  }
  incidents_->inspect_full(at, group, slot);
  if (slot.differs) {
    return;
  }
  for (const auto& [rank, number] : members) {
    player(rank).device.finish(number, at);
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
    for (const auto& [send, receive] : std::exchange(messages.matched(), {})) {
      const Message& sent = messages.at(send);
      Message received = messages.at(receive);
      received.op.root = sent.op.rank;  // a receive from any source has its sender now
      const Time at = std::max(sent.posted, received.posted);
      const bool fit = sent.op.numel == received.op.numel && sent.op.dtype == received.op.dtype;
      if (!fit) {
        incidents_->message(at, sent, received);
      }
      for (const MessageId id : {send, receive}) {
        messages.at(id).phase = fit ? Message::Phase::done : Message::Phase::stuck;
        const auto [rank, number] = posters_.at({static_cast<GroupId>(group), id});
        if (fit) {
          player(rank).device.finish(number, at);
        }
      }
      moved = true;
    }
  }
  return moved;
}

bool TapeReplay::enter_group_call(Rank rank, const TapeEvent& event) {
  Player& self = player(rank);
  if (event.op.kind == OpKind::destroy_process_group) {
    if (queues_ && !self.device.is_idle()) {
      return false;  // destroying a communicator waits for the queued calls
    }
    if (!self.entered) {
      destroyed_[event.op.group].push_back(rank);
    }
    if (!queues_) {
      return true;  // every rank closes its own side
    }
  }
  const Channel channel = check::channel_of(event.op.kind);
  check::GroupMatcher& matcher = others_of(event.op.group, channel);
  if (!std::exchange(self.entered, true)) {
    Op op = event.op;
    op.numel = event.ranks.empty() ? op.numel : number_of(event.ranks, op.group);
    Slot& slot = matcher.arrive(op);
    note_late_call(op, slot.seq, event.at);
    if (slot.differs) {
      incidents_->suspect(event.at, op.group, slot.seq, channel);
    }
    if (slot.phase == Slot::Phase::full) {
      incidents_->inspect_full(event.at, op.group, slot);
      slot.phase = slot.differs ? slot.phase : Slot::Phase::done;
      matcher.retire();
    }
  }
  return matcher.find(matcher.calls_of(event.op.rank) - 1) == nullptr;
}

}  // namespace rollcall::conformance
