// EvidenceBuilder's part about what could still happen: the supervisor asks this during a run, and it is unknown
// after a run that was ended early.

#include <algorithm>

#include "real/evidence/evidence_builder.h"
#include "sim/base/expects.h"
#include "sim/c10d/backend_traits.h"

namespace rollcall::real {

using check::Channel;
using check::Message;
using check::RankStatus;
using check::Slot;

bool EvidenceBuilder::gives_up_in_time(const Call& call) const {
  if (call.limit) {
    return *call.limit <= options_.deadline;
  }
  const bool is_timed =
      traits_of(options_.backend).raises_timeouts && check::channel_of(call.op.kind) == Channel::collectives;
  const Duration timeout = is_timed ? timeouts_[call.op.group] : 0;
  return timeout > 0 && timeout <= options_.deadline;
}

// True if the rank's process has left, or is about to: connected ranks will notice.
bool EvidenceBuilder::is_gone(Rank rank) const {
  const auto at = static_cast<std::size_t>(rank);
  const RankStatus::State state = status_[at].state;
  const bool is_through = state == RankStatus::State::finished || state == RankStatus::State::raised;
  return log_.ranks[at].death || (is_through && (options_.finished_ranks_exit || states_[at].lost_peer));
}

EvidenceBuilder::Outlook EvidenceBuilder::outlook(const RankStatus& status) const {
  const Place place{status.group, status.channel, status.seq, status.message};
  if (ending_.contains(place)) {
    return Outlook::good;
  }
  const bool is_broken = broken_.contains(place);
  if (status.in_message()) {
    if (is_broken) {
      return Outlook::doubtful;
    }
    switch (messengers_[status.group]->at(status.message).phase) {
      case Message::Phase::matched:
        return Outlook::good;
      case Message::Phase::stuck:
        return Outlook::doubtful;
      case Message::Phase::planned:
      case Message::Phase::pending:
      case Message::Phase::done:
      case Message::Phase::failed:
        return Outlook::hopeless;
    }
  }
  if (status.channel == Channel::store) {
    const auto rank = static_cast<std::size_t>(status.seq);
    return store_.missing(notes_.store_waits[rank].keys).empty() ? Outlook::good : Outlook::hopeless;
  }
  const check::GroupMatcher& matcher = *group_evidence_[status.group].calls(status.channel);
  const Slot* slot = matcher.find(status.seq);
  expects(slot != nullptr, "a rank waits in a slot that is alive");
  if (slot->arrived < matcher.size() && !is_broken) {
    const bool will_hear =
        std::ranges::any_of(groups_[status.group].ranks, [this](Rank rank) { return is_gone(rank); });
    return will_hear ? Outlook::doubtful : Outlook::hopeless;
  }
  return slot->differs || is_broken ? Outlook::doubtful : Outlook::good;
}

void EvidenceBuilder::note_absent_ranks() {
  for (std::size_t rank = 0; rank < log_.ranks.size(); ++rank) {
    if (log_.ranks[rank].is_absent) {
      notes_.end(status_[rank], RankStatus::State::running, "did not come", "");
    }
  }
}

check::LimitIncident EvidenceBuilder::limit() const {
  RankSet absent;
  bool have_begun = true;
  for (std::size_t rank = 0; rank < log_.ranks.size(); ++rank) {
    if (log_.ranks[rank].is_absent) {
      absent.insert(static_cast<Rank>(rank));
    }
    have_begun = have_begun && std::ranges::any_of(log_.ranks[rank].records, [](const Record& record) {
                   return record.kind == Record::Kind::begin;
                 });
  }
  return have_begun
             ? check::LimitIncident{FindingKind::deadline, options_.deadline / millisecond}
             : check::LimitIncident{FindingKind::never_connected, options_.connecting / millisecond, absent};
}

// A run that was ended by its deadline proves nothing if some rank could still have moved.
void EvidenceBuilder::apply_deadline() {
  const auto could_move = [this](const RankStatus& status) {
    return status.state == RankStatus::State::running ||
           (status.state == RankStatus::State::waiting && outlook(status) == Outlook::good);
  };
  if (log_.timed_out && !notes_.limit && std::ranges::any_of(status_, could_move)) {
    notes_.limit = limit();
  }
}

}  // namespace rollcall::real
