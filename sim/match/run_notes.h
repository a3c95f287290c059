#pragma once

// RunNotes: what is noted about a run besides its calls, while it runs: what went wrong first, which ranks gave up, how
// ranks ended, which lists of ranks were named and which groups were destroyed. The engine writes it while ranks run,
// and the reader of real ranks' logs while it replays them; the judge's evidence is made from it.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/c10d/host_calls.h"
#include "sim/match/evidence.h"
#include "sim/match/incidents.h"

namespace rollcall::check {

class RunNotes {
 public:
  // Borrowed. Groups may be added.
  RunNotes(const std::vector<GroupEvidence>& groups, const ScopeTable& scopes)
      : incidents(groups, scopes), groups_(groups), scopes_(scopes) {}

  // Notes the end of a rank, by an exception unless `type` is empty.
  void end(RankStatus& status, RankStatus::State state, const std::string& type, const std::string& message);

  // Equal lists of one parent have one number, so that comparing calls is comparing numbers. An empty list means all
  // ranks of the parent.
  std::int64_t number_of(std::vector<RankList> lists, const GroupMembers& parent);
  const std::vector<RankList>& lists(std::int64_t number) const {
    return rank_lists_[static_cast<std::size_t>(number)];
  }

  // A rank (global) destroys its side of a group. Destroying the world destroys all its groups.
  void destroy(GroupId group, Rank rank);

  void set_key(Rank rank, const std::string& key);
  void delete_key(Rank rank, const std::string& key) { key_deleters_[key] = rank; }

  // A rank gives up in a slot, `place`, after `patience`. Only the first such event is remembered, and only if others
  // have not arrived. `op`: the rank's call. `is_only_lateness`: ranks that never come may have other reasons.
  void give_up(Time at, Rank rank, const RankStatus& place, const Op& op, Duration patience,
               std::span<const RankStatus> ranks, bool is_only_lateness = false);
  // The same for a message whose other end has not come from a rank that is at work elsewhere.
  void give_up(Time at, Rank rank, const Message& message, Duration patience,
               std::span<const RankStatus> ranks);
  bool has_given_up() const { return timeout_.has_value(); }
  // A rank makes a call: perhaps one that others have given up on.
  void note_late_call(Time at, const Op& op, std::int64_t seq);

  // Borrows from this object and from the arguments. `looks_for_leaks`: for groups that a finished rank has not
  // destroyed.
  Evidence evidence(std::string_view backend, std::span<const RankStatus> ranks, bool looks_for_leaks);

  IncidentLog incidents;
  std::optional<LimitIncident> limit{};
  std::vector<StoreWait> store_waits{};  // by global rank; empty while no rank has asked
  std::map<Rank, Site> raised_at{};      // of exceptions that ended ranks, where known

 private:
  bool has_destroyed(GroupId group, Rank rank) const;
  void find_leaks(std::span<const RankStatus> ranks);

  const std::vector<GroupEvidence>& groups_;
  const ScopeTable& scopes_;
  std::vector<Exception> exceptions_;
  std::unordered_map<std::string, std::int32_t> exception_ids_;  // looked up, never iterated
  std::vector<std::vector<RankList>> rank_lists_;                // by number
  std::map<std::pair<GroupId, std::vector<RankList>>, std::int64_t>
      rank_list_numbers_;                           // by parent; as called
  std::map<GroupId, std::vector<bool>> destroyed_;  // by global rank
  std::vector<Leak> leaks_;
  std::optional<TimeoutIncident> timeout_;
  KeySetters key_setters_;
  KeyDeleters key_deleters_;
};

}  // namespace rollcall::check
