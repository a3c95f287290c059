// EvidenceBuilder's part about calls and ranks that ended abnormally.

#include <fmt/core.h>

#include "real/evidence/evidence_builder.h"
#include "real/process/process_state.h"
#include "sim/c10d/backend_traits.h"

namespace rollcall::real {

using check::MessageMatcher;
using check::RankStatus;

// The rank got an error instead of a result.
void EvidenceBuilder::fail(Rank rank, const Record& record) {
  const Call& call = state_of(rank).calls[static_cast<std::size_t>(record.call)];
  give_up(call);
  note_refused_device(rank, call, record);
  state_of(rank).lost_peer = record.lost_peer;
  if (record.lost_peer && (call.limit || record.text.find("Timed out waiting") != std::string::npos)) {
    note_timeout(rank, call, record.at);
  }
  // A call with its own limit has ended as its program intended.
  if (record.lost_peer && extent_.until_noticed && !call.limit) {
    wait(rank, record);
    state_of(rank).is_over = true;
    return;
  }
  status_[static_cast<std::size_t>(rank)].state = RankStatus::State::running;
}

// Records that the backend has refused a call because of the device of its tensor.
void EvidenceBuilder::note_refused_device(Rank rank, const Call& call, const Record& record) {
  const Op& op = call.op;
  const bool needs_gpu = traits_of(options_.backend).device == DeviceType::cuda && has_tensor(op.kind);
  if (record.kind != Record::Kind::refuse || !needs_gpu || op.group >= groups_.size()) {
    return;
  }
  check::DeviceIncident incident;
  if (op.device.type == DeviceType::cuda) {
    const std::optional<Device> before = matcher_of(op.group, check::Channel::collectives).device_of(op.rank);
    if (!before || *before == op.device) {
      return;  // refused for another reason
    }
    incident.kind = FindingKind::stray_device;
    incident.expected = *before;
  }
  incident.ranks = {rank};
  incident.op = op;
  if (!is_point_to_point(op.kind)) {
    incident.seq = matcher_of(op.group, check::channel_of(op.kind)).calls_of(op.rank);
  }
  // The same moment for all ranks that make the mistake in the same call.
  incident.at = refused_at_.try_emplace({op.group, incident.seq}, record.at).first->second;
  notes_.incidents.device(incident);
}

// Records the timeout of a call that others had not made. If the limit is that of the group, the others may have waited
// elsewhere as well, so only those that came after all were late.
void EvidenceBuilder::note_timeout(Rank rank, const Call& call, Time at) {
  if (call.store || call.seq == no_seq) {
    return;
  }
  const Duration of_group = timeouts_[call.op.group];
  const Duration limit = call.limit.value_or(of_group > 0 ? of_group : traits_of(options_.backend).timeout);
  if (call.message != check::no_message) {
    notes_.give_up(at, rank, messages_of(call.op.group).at(call.message), limit, status_);
    return;
  }
  RankStatus place;
  place.group = call.op.group;
  place.channel = check::channel_of(call.op.kind);
  place.seq = call.seq;
  notes_.give_up(at, rank, place, call.op, limit, status_, !call.limit);
}

void EvidenceBuilder::give_up(const Call& call) {
  if (call.seq == no_seq) {
    return;
  }
  const check::Channel channel = check::channel_of(call.op.kind);
  if (call.message == check::no_message) {
    broken_.insert(place_of(call));
    if (check::Slot* slot = call.store ? nullptr : matcher_of(call.op.group, channel).find(call.seq)) {
      slot->given_up = true;
    }
    return;
  }
  const MessageMatcher& messages = messages_of(call.op.group);
  if (const check::MessageId partner = messages.at(call.message).partner; partner != check::no_message) {
    broken_.emplace(call.op.group, channel, messages.at(partner).seq, partner);
  }
}

void EvidenceBuilder::record_death(Rank rank, const Death& death) {
  RankState& state = state_of(rank);
  const bool is_lost = death.exit_code == unknown_exit;
  std::string text = is_lost || state.last_output.empty() ? death.text : state.last_output;
  if (const std::string call = open_call_of(rank); text.empty() && !call.empty()) {
    text = "while it was in " + call;
  }
  for (const Call& call : state.calls) {
    if (!call.done) {
      give_up(call);
    }
  }
  notes_.end(status_[static_cast<std::size_t>(rank)], RankStatus::State::crashed,
             death.signal != 0 ? signal_name(death.signal)
             : is_lost         ? "an unknown cause"
                               : fmt::format("exit code {}", death.exit_code),
             text);
}

// "all_reduce #3 on world": the rank's first call that has not completed, even if the replay leaves it out.
std::string EvidenceBuilder::open_call_of(Rank rank) const {
  std::map<Queue, std::int64_t> next;
  const RankState& state = states_[static_cast<std::size_t>(rank)];
  std::string phrase;
  for (const Call& call : state.calls) {
    std::int64_t& seq = next[queue_of(call.op)];
    if (!call.done && call.op.group != unknown_group) {
      phrase = fmt::format("{} #{} on {}", to_string(call.op.kind), seq, groups_[call.op.group].name);
      break;
    }
    ++seq;
  }
  return phrase;
}

}  // namespace rollcall::real
