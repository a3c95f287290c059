#pragma once

// The earliest incident of each kind in a run, independent of the order in which ranks happened to run at one instant:
// earlier in time first, then the lower group, then the lower slot. But of the calls of one group that disagree, the
// lowest slot comes first, whatever the time: slots are paired in this order, and a rank may issue many of them before
// a slow one gets to the first.

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/scope_table.h"
#include "sim/match/evidence.h"

namespace rollcall::check {

class IncidentLog {
 public:
  // Both are borrowed. Groups may be added.
  IncidentLog(const std::vector<GroupEvidence>& groups, const ScopeTable& scopes)
      : groups_(groups), scopes_(scopes) {}

  // Some calls in the slot disagree. Cheap; called when the first difference arrives.
  void suspect(Time at, GroupId group, std::int64_t seq, Channel channel = Channel::collectives);
  // The slot is full and about to be settled: the last chance to inspect it.
  void inspect_full(Time at, GroupId group, const Slot& slot);
  // A member's call is about to be withdrawn from the slot: its disagreement is remembered.
  void inspect_withdrawn(GroupId group, const Slot& slot, Rank member);
  void device(const DeviceIncident& incident);
  // A finding of a rank about its calls or data: only the first of each kind is kept.
  void observe(Time at, Rank rank, const Observation& observation);
  // A send met a receive of another size or dtype.
  void message(Time at, const Message& send, const Message& receive);

  void store(const StoreIncident& incident);
  bool empty() const {
    return suspects_.empty() && !message_ && !mispairing_key_ && !device_ && !store_ && observations_.empty();
  }

  // Fills the incidents of `evidence`, which borrows them. Slots that never filled up are inspected now.
  void add_to(Evidence& evidence);

 private:
  struct Key {
    Time at = 0;
    GroupId group = 0;
    Channel channel = Channel::collectives;
    bool is_message = false;  // messages are counted separately from collectives
    std::int64_t seq = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // A slot in which calls disagree.
  struct Suspect {
    Key key;
    std::vector<OpVariant> withdrawn{};  // calls that were withdrawn from it
    std::optional<Incident> incident{};  // filled once it is full
  };
  // The suspect of its group, if that is this slot.
  Suspect* find_suspect(GroupId group, Channel channel, std::int64_t seq);
  std::vector<OpVariant> variants_of(const Suspect& suspect) const;
  std::optional<Incident> mismatch() const;
  std::vector<PartMisfit> misfits_of(GroupId group, const Slot& slot) const;
  Incident incident_of(const Key& key, std::vector<OpVariant> variants) const;

  const std::vector<GroupEvidence>& groups_;
  const ScopeTable& scopes_;
  std::map<std::pair<GroupId, Channel>, Suspect> suspects_;  // the lowest of each
  std::optional<std::pair<Key, Incident>> message_;
  std::optional<Key> mispairing_key_;
  std::optional<Incident> mispairing_;
  std::optional<DeviceIncident> device_;
  std::optional<StoreIncident> store_;
  std::vector<RankObservation> observations_;
  std::set<std::pair<Rank, Observation::Kind>> observed_;
};

}  // namespace rollcall::check
