#include "sim/match/run_notes.h"

#include <algorithm>

#include "sim/base/expects.h"

namespace rollcall::check {
namespace {

bool are_ends_of_one_message(const Op& a, const Op& b) {
  return is_point_to_point(a.kind) && is_point_to_point(b.kind) && a.kind != b.kind && a.root == b.rank &&
         a.rank == b.root && a.tag == b.tag;
}

}  // namespace

void RunNotes::end(RankStatus& status, RankStatus::State state, const std::string& type,
                   const std::string& message) {
  status.state = state;
  if (type.empty()) {
    return;
  }
  const auto [entry, is_new] =
      exception_ids_.try_emplace(type + ": " + message, static_cast<std::int32_t>(exceptions_.size()));
  if (is_new) {
    exceptions_.push_back({type, message});
  }
  status.exception = entry->second;
}

std::int64_t RunNotes::number_of(std::vector<RankList> lists, const GroupMembers& parent) {
  const auto [entry, is_new] = rank_list_numbers_.try_emplace(std::pair(parent.id, std::move(lists)),
                                                              static_cast<std::int64_t>(rank_lists_.size()));
  if (is_new) {
    rank_lists_.push_back(entry->first.second);
    for (RankList& ranks : rank_lists_.back()) {
      if (ranks.empty()) {
        ranks = parent.ranks;
      }
    }
  }
  return entry->second;
}

void RunNotes::destroy(GroupId group, Rank rank) {
  expects(rank >= 0, "a rank ends a group for itself");
  std::vector<bool>& by = destroyed_[group];
  by.resize(std::max(by.size(), static_cast<std::size_t>(rank) + 1));
  by[static_cast<std::size_t>(rank)] = true;
}

bool RunNotes::has_destroyed(GroupId group, Rank rank) const {
  const auto found = destroyed_.find(group);
  const auto at = static_cast<std::size_t>(rank);
  return found != destroyed_.end() && at < found->second.size() && found->second[at];
}

void RunNotes::set_key(Rank rank, const std::string& key) {
  const auto [setter, is_new] = key_setters_.try_emplace(key, rank);
  setter->second = is_new || setter->second == rank ? rank : several_set;
  key_deleters_.erase(key);
}

void RunNotes::give_up(Time at, Rank rank, const RankStatus& place, const Op& op, Duration patience,
                       std::span<const RankStatus> ranks, bool is_only_lateness) {
  const GroupMatcher* matcher = groups_[place.group].calls(place.channel);
  const Slot* slot = timeout_ || matcher == nullptr ? nullptr : matcher->find(place.seq);
  if (slot == nullptr) {
    return;
  }
  TimeoutIncident incident{
      .at = at, .op = op, .seq = place.seq, .limit = patience, .is_only_lateness = is_only_lateness};
  incident.op.tensors = {};  // they may be gone when this is read
  const auto waits_there = [&](Rank other) {
    const RankStatus& status = ranks[static_cast<std::size_t>(other)];
    return status.waits() && !status.in_message() && status.channel == place.channel &&
           status.group == place.group && status.seq == place.seq;
  };
  const std::vector<Rank>& members = groups_[place.group].members->ranks;
  for (std::size_t member = 0; member < members.size(); ++member) {
    if (!slot->has(static_cast<Rank>(member))) {
      incident.late.push_back(members[member]);
    } else if (members[member] == rank || waits_there(members[member])) {
      incident.waiting.push_back(members[member]);
    }
  }
  incident.came.assign(incident.late.size(), -1);
  if (!incident.late.empty()) {
    timeout_ = std::move(incident);
  }
}

void RunNotes::give_up(Time at, Rank rank, const Message& message, Duration patience,
                       std::span<const RankStatus> ranks) {
  if (timeout_ || message.phase != Message::Phase::pending || message.op.root < 0) {
    return;
  }
  const std::vector<Rank>& members = groups_[message.op.group].members->ranks;
  const Rank peer = members[static_cast<std::size_t>(message.op.root)];
  if (ranks[static_cast<std::size_t>(peer)].state == RankStatus::State::running) {
    timeout_ = TimeoutIncident{.at = at,
                               .op = message.op,
                               .seq = message.seq,
                               .limit = patience,
                               .waiting = {rank},
                               .late = {peer},
                               .came = {-1},
                               .is_only_lateness = true};
    timeout_->op.tensors = {};
  }
}

void RunNotes::note_late_call(Time at, const Op& op, std::int64_t seq) {
  if (!timeout_ || timeout_->op.group != op.group) {
    return;
  }
  const bool is_one_slot = !is_point_to_point(op.kind) && !is_point_to_point(timeout_->op.kind) &&
                           timeout_->seq == seq && channel_of(timeout_->op.kind) == channel_of(op.kind);
  if (!is_one_slot && !are_ends_of_one_message(timeout_->op, op)) {
    return;
  }
  const Rank rank = groups_[op.group].members->ranks[static_cast<std::size_t>(op.rank)];
  const auto found = std::ranges::find(timeout_->late, rank);
  if (found != timeout_->late.end()) {
    timeout_->came[static_cast<std::size_t>(found - timeout_->late.begin())] = at;
  }
}

void RunNotes::find_leaks(std::span<const RankStatus> ranks) {
  leaks_.clear();
  for (const GroupEvidence& group : groups_) {
    Leak leak{group.members->id, {}};
    for (const Rank rank : group.members->ranks) {
      const bool finished = ranks[static_cast<std::size_t>(rank)].state == RankStatus::State::finished;
      if (finished && !has_destroyed(leak.group, rank) && !has_destroyed(world_group, rank)) {
        leak.ranks.push_back(rank);
      }
    }
    if (!leak.ranks.empty()) {
      leaks_.push_back(std::move(leak));
    }
  }
}

Evidence RunNotes::evidence(std::string_view backend, std::span<const RankStatus> ranks,
                            bool looks_for_leaks) {
  if (looks_for_leaks) {
    find_leaks(ranks);
  }
  Evidence evidence;
  evidence.backend = backend;
  evidence.groups = groups_;
  evidence.ranks = ranks;
  evidence.exceptions = exceptions_;
  evidence.raised_at = &raised_at;
  evidence.scopes = &scopes_;
  evidence.limit = limit;
  evidence.timeout = timeout_;
  evidence.store_waits = store_waits;
  evidence.key_setters = &key_setters_;
  evidence.key_deleters = &key_deleters_;
  evidence.rank_lists = rank_lists_;
  evidence.leaks = leaks_;
  incidents.add_to(evidence);
  return evidence;
}

}  // namespace rollcall::check
