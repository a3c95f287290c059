// The end of a replayed tape: where every rank is, as evidence for the judge.

#include <algorithm>
#include <utility>

#include "sim/torch/torch_traits.h"
#include "tests/conformance/tape_replay.h"

namespace rollcall::conformance {
namespace {

using check::Channel;
using check::MessageMatcher;
using check::RankStatus;
using Kind = TapeEvent::Kind;

}  // namespace

void TapeReplay::end(Rank rank) {
  const RankTape& tape = tape_.ranks[static_cast<std::size_t>(rank)];
  Player& self = player(rank);
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status = {};
  status.inputs = tape.inputs;
  status.ran_out = tape.ran_out;
  if (self.dead || (self.next == tape.events.size() && tape.end == RankTape::End::raised)) {
    status.state = self.dead ? RankStatus::State::crashed : RankStatus::State::raised;
    status.exception = static_cast<std::int32_t>(exceptions_.size());
    exceptions_.push_back({tape.type, tape.text});
  } else if (self.next < tape.events.size()) {
    wait_in_event(rank, tape.events[self.next]);
  } else if (queues_ && !self.device.streams_are_idle()) {
    wait_in(rank, self.device.blocking());  // its process still runs
  } else {
    status.state = RankStatus::State::finished;
  }
}

void TapeReplay::wait_in(Rank rank, std::optional<Number> number) {
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = RankStatus::State::waiting;
  status.channel = Channel::collectives;
  if (number) {
    const TapeDevice::Call& call = player(rank).device.call(*number);
    status.group = call.op.group;
    status.group_rank = call.op.rank;
    status.seq = call.seq;
    status.message = call.message;
  }
}

// Returns the call on its GPU that a rank in `event` waits for.
std::optional<TapeReplay::Number> TapeReplay::call_of(const Player& self, const TapeEvent& event) const {
  if (event.kind == Kind::wait && !event.calls.empty()) {
    return self.device.blocking(static_cast<Number>(event.calls.front()));
  }
  if (event.kind == Kind::issue && !queues_) {
    return self.device.count() - 1;  // its backend first compares it with the other ranks
  }
  return event.kind == Kind::wait_event ? self.device.blocking(event.point) : self.device.blocking();
}

void TapeReplay::wait_in_event(Rank rank, const TapeEvent& event) {
  const Player& self = player(rank);
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.message = check::no_message;
  if (event.kind == Kind::compute || event.kind == Kind::observe) {
    status.state = RankStatus::State::running;
  } else if (event.kind == Kind::store_call) {
    status.state = RankStatus::State::waiting;
    status.group = world_group;
    status.group_rank = rank;
    status.channel = Channel::store;
    status.seq = rank;
    store_waits_[static_cast<std::size_t>(rank)] = {event.op, event.keys};
  } else if (event.kind == Kind::group_call && self.entered) {
    status.state = RankStatus::State::waiting;
    status.group = event.op.group;
    status.group_rank = event.op.rank;
    status.channel = check::channel_of(event.op.kind);
    status.seq = others_of(event.op.group, status.channel).calls_of(event.op.rank) - 1;
  } else {
    wait_in(rank, call_of(self, event));
  }
}

// Returns the rank that uses the GPU of a refused call; -1 if there is none.
Rank TapeReplay::user_of_gpu(Rank rank, const Op& op) const {
  for (const Rank other : tape_.groups[op.group].ranks) {
    const auto used = devices_.find({op.group, other});
    if (other != rank && used != devices_.end() && used->second == op.device &&
        machine_.hosts[static_cast<std::size_t>(other)] == machine_.hosts[static_cast<std::size_t>(rank)]) {
      return other;
    }
  }
  return -1;
}

void TapeReplay::find_shared_gpus() {
  for (check::DeviceIncident& incident : refused_) {
    const Rank rank = incident.ranks.front();
    const Rank user = user_of_gpu(rank, incident.op);
    if (user < 0) {
      continue;
    }
    const bool is_own =
        !machine_.gpus.empty() && machine_.gpus[static_cast<std::size_t>(rank)] == incident.op.device;
    incident.kind = FindingKind::duplicate_gpu;
    incident.ranks = {is_own ? user : rank};
    incident.other = is_own ? rank : user;
    incidents_->device(incident);
  }
}

// Finds groups that ranks had not destroyed when they finished.
void TapeReplay::find_leaks() {
  for (const GroupMembers& group : tape_.groups) {
    check::Leak leak{group.id, {}};
    for (const Rank rank : machine_.check_leaks ? group.ranks : std::vector<Rank>()) {
      const bool destroyed = std::ranges::count(destroyed_[group.id], rank) > 0 ||
                             std::ranges::count(destroyed_[world_group], rank) > 0;
      if (!destroyed && status_[static_cast<std::size_t>(rank)].state == RankStatus::State::finished) {
        leak.ranks.push_back(rank);
      }
    }
    if (!leak.ranks.empty()) {
      leaks_.push_back(std::move(leak));
    }
  }
}

check::Evidence TapeReplay::evidence() {
  check::Evidence evidence;
  evidence.backend = machine_.backend;
  evidence.torch = &traits_of(machine_.torch);
  evidence.new_group_waits_for_all = machine_.new_group_waits_for_all;
  evidence.groups = groups_;
  evidence.ranks = status_;
  evidence.exceptions = exceptions_;
  evidence.scopes = &tape_.scopes;
  evidence.timeout = timeout_;
  for (check::StoreWait& wait : store_waits_) {
    std::erase_if(wait.keys, [this](const std::string& key) { return key_setters_.contains(key); });
  }
  evidence.store_waits = store_waits_;
  evidence.key_setters = &key_setters_;
  evidence.rank_lists = rank_lists_;
  evidence.leaks = leaks_;
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

// Equal lists have the same number. An empty list means all ranks.
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
