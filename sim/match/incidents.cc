#include "sim/match/incidents.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/expects.h"

namespace rollcall::check {

void IncidentLog::suspect(Time at, GroupId group, std::int64_t seq, Channel channel) {
  const Key key{at, group, channel, false, seq};
  const auto [found, is_new] = suspects_.try_emplace({group, channel}, Suspect{key});
  const Key& lowest = found->second.key;
  if (!is_new && std::tie(seq, at) < std::tie(lowest.seq, lowest.at)) {
    found->second = {key};
  }
}

void IncidentLog::inspect_full(Time at, GroupId group, const Slot& slot) {
  const Channel channel = channel_of(slot.reference.kind);
  expects(groups_[group].calls(channel) != nullptr, "a slot is in its group's matcher");
  const GroupMatcher& matcher = *groups_[group].calls(channel);
  expects(slot.arrived == matcher.size(), "a full slot is inspected");
  if (Suspect* suspect = slot.differs ? find_suspect(group, channel, slot.seq) : nullptr) {
    suspect->incident = incident_of(suspect->key, variants_by_call(matcher, slot));
    if (slot.uneven) {
      suspect->incident->misfits = misfits_of(group, slot);
    }
  }
  const Key key{at, group, channel, false, slot.seq};
  if (!slot.differs && (!mispairing_key_ || key < *mispairing_key_) && is_mispaired(slot, scopes_)) {
    mispairing_key_ = key;
    mispairing_ = incident_of(key, variants_by_pairing(matcher, slot, scopes_));
  }
}

void IncidentLog::inspect_withdrawn(GroupId group, const Slot& slot, Rank member) {
  const Channel channel = channel_of(slot.reference.kind);
  if (Suspect* suspect = find_suspect(group, channel, slot.seq)) {
    suspect->withdrawn.push_back({groups_[group].calls(channel)->op_of(slot, member), {member}});
    suspect->withdrawn.back().op.tensors = {};  // the tensors go away with their rank
  }
}

IncidentLog::Suspect* IncidentLog::find_suspect(GroupId group, Channel channel, std::int64_t seq) {
  const auto found = suspects_.find({group, channel});
  return found != suspects_.end() && found->second.key.seq == seq ? &found->second : nullptr;
}

// For a slot that never filled up: the calls in it, and those that were withdrawn.
std::vector<OpVariant> IncidentLog::variants_of(const Suspect& suspect) const {
  const GroupMatcher& matcher = *groups_[suspect.key.group].calls(suspect.key.channel);
  expects(matcher.find(suspect.key.seq) != nullptr, "a slot that calls disagree in is never retired");
  const Slot& slot = *matcher.find(suspect.key.seq);
  std::vector<OpVariant> variants;
  if (slot.arrived > 0) {
    variants = variants_by_call(matcher, slot);
  }
  for (const OpVariant& gone : suspect.withdrawn) {
    const auto like = std::ranges::find_if(
        variants, [&](const OpVariant& variant) { return same_call(variant.op, gone.op); });
    if (like == variants.end()) {
      variants.push_back(gone);
    } else {
      like->ranks.insert(std::ranges::upper_bound(like->ranks, gone.ranks.front()), gone.ranks.front());
    }
  }
  sort_variants(variants);
  return variants;
}

// The earliest of all groups and of the messages.
std::optional<Incident> IncidentLog::mismatch() const {
  const auto first =
      std::ranges::min_element(suspects_, {}, [](const auto& each) -> const Key& { return each.second.key; });
  if (first == suspects_.end() || (message_ && message_->first < first->second.key)) {
    return message_ ? std::optional(message_->second) : std::nullopt;
  }
  const Suspect& suspect = first->second;
  return suspect.incident ? suspect.incident : incident_of(suspect.key, variants_of(suspect));
}

void IncidentLog::device(const DeviceIncident& incident) {
  expects(!incident.ranks.empty(), "an incident happens to somebody");
  const auto key = [](const DeviceIncident& i) { return std::tuple(i.at, i.op.group, i.seq, i.kind); };
  if (!device_ || key(incident) < key(*device_)) {
    device_ = incident;
    return;
  }
  if (key(incident) == key(*device_)) {  // the same mistake on another rank
    RankSet ranks = RankSet::of(device_->ranks);
    ranks.insert(RankSet::of(incident.ranks));
    if (incident.ranks.front() < device_->ranks.front()) {
      device_ = incident;
    }
    device_->ranks = ranks.to_vector();
  }
}

void IncidentLog::observe(Time at, Rank rank, const Observation& observation) {
  if (observed_.emplace(rank, observation.kind).second) {
    observations_.push_back({at, rank, observation});
  }
}

void IncidentLog::message(Time at, const Message& send, const Message& receive) {
  const Key key{at, send.op.group, Channel::collectives, true, send.seq};
  if (!message_ || key < message_->first) {
    message_ = {key, incident_of(key, {{send.op, {send.op.rank}}, {receive.op, {receive.op.rank}}})};
  }
}

void IncidentLog::store(const StoreIncident& incident) {
  if (!store_ || std::tie(incident.at, incident.rank) < std::tie(store_->at, store_->rank)) {
    store_ = incident;
  }
}

void IncidentLog::add_to(Evidence& evidence) {
  evidence.mismatch = mismatch();
  evidence.mispairing = mispairing_;
  evidence.device = device_;
  evidence.store = store_;
  // The order must not be the one in which ranks ran at one instant.
  std::ranges::stable_sort(observations_, {}, [](const RankObservation& incident) {
    return std::pair(incident.at, incident.rank);
  });
  evidence.observations = observations_;
}

// Empty when the calls themselves do not agree.
std::vector<PartMisfit> IncidentLog::misfits_of(GroupId group, const Slot& slot) const {
  const std::vector<Rank>& members = groups_[group].members->ranks;
  const bool agree =
      std::ranges::all_of(slot.ops, [&](const Op& op) { return same_call(op, slot.ops.front()); });
  if (!agree || slot.ops.size() != members.size()) {
    return {};
  }
  std::vector<OpTensors> tensors;
  for (const Op& op : slot.ops) {
    tensors.push_back(op.tensors);
  }
  std::vector<PartMisfit> misfits = part_misfits(slot.reference, tensors);
  for (PartMisfit& misfit : misfits) {
    misfit.sender = members[static_cast<std::size_t>(misfit.sender)];
    misfit.receiver = members[static_cast<std::size_t>(misfit.receiver)];
  }
  return misfits;
}

Incident IncidentLog::incident_of(const Key& key, std::vector<OpVariant> variants) const {
  const std::vector<Rank>& members = groups_[key.group].members->ranks;
  expects(variants.size() > 1 || key.is_message, "calls that disagree are of two kinds at least");
  for (OpVariant& variant : variants) {
    for (Rank& rank : variant.ranks) {
      rank = members[static_cast<std::size_t>(rank)];
    }
  }
  return {key.at, key.group, key.seq, std::move(variants), key.channel};
}

}  // namespace rollcall::check
