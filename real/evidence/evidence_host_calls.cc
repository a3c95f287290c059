// EvidenceBuilder's part about calls of hosts: groups that the ranks make, and the store.

#include <algorithm>

#include <fmt/core.h>

#include "real/evidence/evidence_builder.h"

namespace rollcall::real {

using check::Channel;
using check::RankStatus;

// Whoever comes first says who its members are. Who says otherwise is found by comparing the calls.
void EvidenceBuilder::make_group(const Call& call, const std::string& name) {
  const auto id = static_cast<GroupId>(first_made_ + static_cast<std::size_t>(call.seq));
  if (id < groups_.size()) {
    return;
  }
  add_group({id, name.empty() ? fmt::format("g{}", call.seq + 1) : name, notes_.lists(call.op.numel).front()},
            call.limit.value_or(options_.timeout));
}

// What has been read is known; what has been written decides who still waits.
void EvidenceBuilder::complete_store_call(Rank rank, const Call& call, const Record& record) {
  const StoreCall& asked = *call.store;
  if (sets_key(asked) || asked.kind == StoreCall::Kind::delete_key) {
    store_.apply(asked);
  }
  if (asked.want && record.text != *asked.want) {
    notes_.incidents.store({record.at, rank, call.op, asked.keys.front(), record.text, *asked.want});
  }
}

// Of the keys that ranks wait for, those that nobody has set.
void EvidenceBuilder::find_store_waits() {
  for (std::size_t rank = 0; rank < status_.size(); ++rank) {
    if (status_[rank].state == RankStatus::State::waiting && status_[rank].channel == Channel::store) {
      notes_.store_waits[rank].keys = store_.missing(notes_.store_waits[rank].keys);
    }
  }
}

}  // namespace rollcall::real
