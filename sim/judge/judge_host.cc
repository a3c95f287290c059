#include "sim/judge/judge_parts.h"

#include <algorithm>

#include "sim/match/naming.h"
#include "sim/wording/wording.h"
#include "sim/wording/wording_host.h"

namespace rollcall::check {
namespace {

// By its text; torch 2.14's has the keys.
bool is_store_timeout(std::string_view message) {
  return message == "Socket Timeout" || message.starts_with("wait timeout after ");
}

bool any_of(const Evidence& evidence, const RankSet& ranks, bool (RankStatus::*test)() const) {
  return std::ranges::any_of(ranks.to_vector(),
                             [&](Rank rank) { return (evidence.status_of(rank).*test)(); });
}

// The rank that has deleted one of the keys that a rank waits for.
std::optional<std::pair<Rank, std::string>> deleter_for(const Evidence& evidence, Rank waiting) {
  const RankStatus& status = evidence.status_of(waiting);
  if (evidence.key_deleters == nullptr || status.channel != Channel::store) {
    return std::nullopt;  // it receives from anyone, and nobody is left to send
  }
  for (const std::string& key : evidence.store_wait(status.seq).keys) {
    if (const auto found = evidence.key_deleters->find(key); found != evidence.key_deleters->end()) {
      return std::pair(found->second, key);
    }
  }
  return std::nullopt;
}

}  // namespace

Verdict judge_stale_key(const Evidence& evidence) {
  const StoreIncident& incident = *evidence.store;
  WrongResult wrong;
  wrong.finding.kind = FindingKind::stale_key;
  wrong.finding.culprits = RankSet{incident.rank};
  Call call;
  call.op = to_string(incident.op.kind);
  call.key = incident.key;
  call.label = evidence.scopes->path(incident.op.scope);
  call.site = to_string(incident.op.site);
  wrong.finding.at = Place{call, {}, {}};
  word_stale_key(evidence, incident, wrong.finding);
  return wrong;
}

std::optional<Verdict> judge_timeout(const Evidence& evidence) {
  const TimeoutIncident& incident = *evidence.timeout;
  RankSet never;
  for (std::size_t i = 0; i < incident.late.size(); ++i) {
    if (incident.came[i] < 0) {
      never.insert(incident.late[i]);
    }
  }
  const bool survived = std::ranges::none_of(
      evidence.ranks, [](const RankStatus& status) { return status.has_failed() || status.waits(); });
  if (survived || any_of(evidence, never, &RankStatus::waits)) {
    return std::nullopt;
  }
  if (incident.is_only_lateness && !never.empty()) {
    return std::nullopt;
  }
  Finding finding;
  finding.at = Place{name_call(evidence, incident.op, incident.seq), RankSet::of(incident.waiting),
                     RankSet::of(incident.late)};
  if (never.empty()) {
    finding.kind = FindingKind::watchdog_timeout;
    finding.culprits = finding.at->missing;
    word_late(evidence, incident, finding);
    return Race{finding};
  }
  const bool failed = any_of(evidence, never, &RankStatus::has_failed);
  finding.kind = failed ? FindingKind::rank_crashed : FindingKind::missing_participant;
  for (const Rank rank : never.to_vector()) {
    if (!failed || evidence.status_of(rank).state != RankStatus::State::finished) {
      finding.culprits.insert(rank);
    }
  }
  if (failed && gave_up_in_store(evidence, finding.culprits)) {
    blame_for_timeout_in_store(finding);
  } else {
    word_missing(evidence, {}, finding);
  }
  return Deadlock{finding};
}

Verdict judge_leaks(const Evidence& evidence) {
  ResourceLeak leak;
  leak.finding.kind = FindingKind::group_not_destroyed;
  for (const Leak& group : evidence.leaks) {
    leak.finding.culprits.insert(RankSet::of(group.ranks));
  }
  Call call;
  call.op = to_string(OpKind::destroy_process_group);
  call.group = group_name(evidence, evidence.leaks.front().group);
  leak.finding.at = Place{call, {}, RankSet::of(evidence.leaks.front().ranks)};
  word_leaks(evidence, leak.finding);
  return leak;
}

void blame_for_key(const Evidence& evidence, const BlockedSlot& slot, const RankSet& gone, Finding& finding) {
  const RankSet waiting = RankSet::of(slot.waiting);
  finding.kind = FindingKind::store_never_served;
  finding.at = Place{name_waiting_call(evidence, slot.waiting.front()), waiting, gone};
  if (const auto deleter = deleter_for(evidence, slot.waiting.front())) {
    finding.culprits = RankSet{deleter->first};
    finding.at->missing = difference(finding.culprits, waiting);
    word_deleted_key(deleter->second, finding);
    return;
  }
  finding.culprits = gone.empty() ? waiting : gone;
  if (gone.empty()) {
    finding.suspects = slot.waiting;  // any of them could have set it
  }
  word_never_served(finding);
}

bool gave_up_in_store(const Evidence& evidence, const RankSet& ranks) {
  return std::ranges::all_of(ranks.to_vector(), [&](Rank rank) {
    const Exception* exception = evidence.exception_of(evidence.status_of(rank));
    return exception != nullptr && is_store_timeout(exception->message);
  });
}

void blame_for_timeout_in_store(Finding& finding) {
  const RankSet gave_up = finding.culprits;
  const RankSet& waiting = finding.at->waiting;
  finding.kind = FindingKind::store_cycle;
  finding.tie = gave_up.size() == waiting.size();
  finding.culprits = gave_up.size() < waiting.size() ? gave_up : waiting;
  if (finding.tie) {
    finding.culprits.insert(gave_up);
  }
  word_timeout_in_store(gave_up, finding);
}

std::size_t blame_in_cycle(const std::vector<BlockedSlot>& slots, const Blame& blame, Finding& finding) {
  RankSet in_store;
  RankSet elsewhere;
  for (const std::size_t i : blame.slots) {
    (slots[i].channel == Channel::store ? in_store : elsewhere).insert(RankSet::of(slots[i].waiting));
  }
  finding.kind = FindingKind::store_cycle;
  finding.tie = in_store.size() == elsewhere.size() || elsewhere.empty();
  if (!finding.tie) {
    finding.culprits = in_store.size() < elsewhere.size() ? in_store : elsewhere;
  }
  return *std::ranges::find_if(
      blame.slots, [&](std::size_t i) { return finding.culprits.contains(slots[i].waiting.front()); });
}

}  // namespace rollcall::check
