// EvidenceBuilder's part about host calls: groups that the ranks make, and the store.

#include <fmt/core.h>

#include "real/evidence/evidence_builder.h"
#include "sim/match/group_names.h"

namespace rollcall::real {

using check::Channel;
using check::RankStatus;

// The first rank's call determines the members of the group that new_group makes. Comparing the calls finds ranks that
// pass other members. Different lists for split_group are different groups.
void EvidenceBuilder::make_groups(Rank rank, const Call& call, const std::string& name) {
  const bool splits = call.op.kind == OpKind::split_group;
  const auto [entry, is_new] = made_.try_emplace({place_of(call), splits ? call.op.numel : 0});
  if (is_new) {
    const std::vector<RankList>& lists = notes_.lists(call.op.numel);
    const std::vector<std::string> names =
        names_of_made(call.op.kind, groups_[call.op.group].name, call.seq, name, lists.size());
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const auto id = static_cast<GroupId>(groups_.size());
      entry->second.push_back(id);
      add_group({id, names[i], lists[i]}, call.limit.value_or(options_.timeout), splits);
    }
  }
  std::vector<GroupId>& known = state_of(rank).groups;
  known.insert(known.end(), entry->second.begin(), entry->second.end());
}

// Only calls that write are applied: they decide which ranks still wait. Values that were read are in the log.
void EvidenceBuilder::complete_store_call(Rank rank, const Call& call, const Record& record) {
  const StoreCall& asked = *call.store;
  if (sets_key(asked) || asked.kind == StoreCall::Kind::delete_key) {
    store_.apply(asked);
  }
  if (sets_key(asked)) {
    notes_.set_key(rank, asked.keys.front());
  }
  if (asked.want && record.text != *asked.want) {
    notes_.incidents.store({record.at, rank, call.op, asked.keys.front(), record.text, *asked.want});
  }
}

// Keeps, of the keys that ranks wait for or have waited for, those that no rank has set.
void EvidenceBuilder::find_store_waits() {
  for (check::StoreWait& wait : notes_.store_waits) {
    wait.keys = store_.missing(wait.keys);
  }
}

}  // namespace rollcall::real
