// EvidenceBuilder's part about how calls and ranks came to their end, if not as they should.

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/core.h>

#include "real/evidence/evidence_builder.h"

namespace rollcall::real {

using check::RankStatus;

namespace {

// "SIGKILL".
std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace

// The rank got an error instead of a result.
void EvidenceBuilder::fail(Rank rank, const Record& record) {
  const Call& call = state_of(rank).calls[static_cast<std::size_t>(record.call)];
  give_up(rank, call);
  state_of(rank).lost_peer = record.lost_peer;
  if (record.lost_peer && call.limit) {
    note_timeout(rank, call, record.at);
  }
  // A call that was told how long to wait has ended as its program meant it to.
  if (record.lost_peer && telling_.until_noticed && !call.limit) {
    wait(rank, record);
    state_of(rank).told = true;
    return;
  }
  status_[static_cast<std::size_t>(rank)].state = RankStatus::State::running;
}

// Remembers the first call that was not given more time, and that others had not come to.
void EvidenceBuilder::note_timeout(Rank rank, const Call& call, Time at) {
  if (timeout_ || call.store || call.seq == no_seq || call.message != check::no_message) {
    return;
  }
  const SlotKey key = key_of(call);
  const check::GroupMatcher& matcher = matcher_of(std::get<0>(key), std::get<1>(key));
  const check::Slot* slot = matcher.find(call.seq);
  check::TimeoutIncident incident{
      .at = at, .op = call.op, .seq = call.seq, .limit = *call.limit, .waiting = {}, .late = {}, .came = {}};
  const std::vector<Rank>& members = groups_[call.op.group].ranks;
  for (std::size_t member = 0; slot != nullptr && member < members.size(); ++member) {
    const Rank global = members[member];
    if (!slot->has(static_cast<Rank>(member))) {
      incident.late.push_back(global);
    } else if (global == rank || is_waiting_in(global, key)) {
      incident.waiting.push_back(global);
    }
  }
  incident.came.assign(incident.late.size(), -1);
  if (!incident.late.empty()) {
    timeout_ = std::move(incident);
  }
}

bool EvidenceBuilder::is_waiting_in(Rank rank, const SlotKey& key) const {
  const RankStatus& status = status_[static_cast<std::size_t>(rank)];
  return status.state == RankStatus::State::waiting && !status.in_message() &&
         key == SlotKey{status.group, status.channel, status.seq};
}

// A rank makes the call that others have given up on.
void EvidenceBuilder::note_late_call(Rank rank, const Call& call, Time at) {
  if (!timeout_ ||
      SlotKey{timeout_->op.group, check::channel_of(timeout_->op.kind), timeout_->seq} != key_of(call)) {
    return;
  }
  const auto found = std::ranges::find(timeout_->late, rank);
  if (found != timeout_->late.end()) {
    timeout_->came[static_cast<std::size_t>(found - timeout_->late.begin())] = at;
  }
}

void EvidenceBuilder::give_up(Rank, const Call& call) {
  if (call.seq == no_seq) {
    return;
  }
  if (call.message == check::no_message) {
    const SlotKey key = key_of(call);
    broken_.insert(key);
    if (check::Slot* slot =
            call.store ? nullptr : matcher_of(std::get<0>(key), std::get<1>(key)).find(call.seq)) {
      slot->given_up = true;
    }
  } else if (const auto partner = messages_of(call.op.group).at(call.message).partner;
             partner != check::no_message) {
    broken_messages_.emplace(call.op.group, partner);
  }
}

void EvidenceBuilder::end(Rank rank, RankStatus::State state, const std::string& type,
                          const std::string& text) {
  RankStatus& status = status_[static_cast<std::size_t>(rank)];
  status.state = state;
  if (!type.empty()) {
    const auto same = [&](const check::Exception& e) { return e.type == type && e.message == text; };
    const auto found = std::ranges::find_if(exceptions_, same);
    status.exception = static_cast<std::int32_t>(found - exceptions_.begin());
    if (found == exceptions_.end()) {
      exceptions_.push_back({type, text});
    }
  }
}

void EvidenceBuilder::bury(Rank rank, const Death& death) {
  RankState& state = state_of(rank);
  std::string text = !state.dying_words.empty() ? state.dying_words : death.text;
  if (const std::string call = open_call_of(rank); text.empty() && !call.empty()) {
    text = "while it was in " + call;
  }
  for (const Call& call : state.calls) {
    if (!call.done) {
      give_up(rank, call);
    }
  }
  end(rank, RankStatus::State::crashed,
      death.signal != 0 ? signal_name(death.signal) : fmt::format("exit code {}", death.exit_code), text);
}

// "all_reduce #3 on world": what the log's last words are about, also where the telling leaves it out.
std::string EvidenceBuilder::open_call_of(Rank rank) const {
  std::map<Queue, std::int64_t> next;
  const RankState& state = states_[static_cast<std::size_t>(rank)];
  std::string phrase;
  for (const Call& call : state.calls) {
    std::int64_t& seq = next[queue_of(call.op)];
    if (!call.done) {
      phrase = fmt::format("{} #{} on {}", to_string(call.op.kind), seq, groups_[call.op.group].name);
      break;
    }
    ++seq;
  }
  return phrase;
}

}  // namespace rollcall::real
