#include "sim/judge/judge_parts.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/judge/suspects.h"
#include "sim/match/naming.h"
#include "sim/wording/wording_ranks.h"

namespace rollcall::check {
namespace {

using Kind = Observation::Kind;

bool is_same_mistake(const RankObservation& a, const RankObservation& b) {
  if (a.what.kind != b.what.kind) {
    return false;
  }
  switch (a.what.kind) {
    case Kind::check_failed:
      return a.what.tensor == b.what.tensor;
    case Kind::touched_early:
      return a.what.tensor == b.what.tensor && a.what.access == b.what.access;
    case Kind::foreign_root:
    case Kind::waited_again:
    case Kind::dropped:
    case Kind::left_unwaited:
      return a.what.op.group == b.what.op.group && a.what.op.kind == b.what.op.kind;
    case Kind::stood_outside:
    case Kind::stale_gradient:
    case Kind::hook_notifies:
      return true;
  }
  return false;
}

// The observations of all ranks that made the same mistake as `first`.
std::vector<const RankObservation*> likes_of(const Evidence& evidence, const RankObservation& first) {
  std::vector<const RankObservation*> alike;
  for (const RankObservation& other : evidence.observations) {
    if (is_same_mistake(first, other)) {
      alike.push_back(&other);
    }
  }
  std::ranges::sort(alike, {}, &RankObservation::rank);
  return alike;
}

// One entry per distinct text, with all the ranks that share it.
std::vector<TensorPlace> places_of(const std::vector<const RankObservation*>& alike) {
  std::vector<TensorPlace> places;
  for (const RankObservation* observation : alike) {
    const Observation& what = observation->what;
    const auto known = std::ranges::find_if(places, [&](const TensorPlace& place) {
      return place.tensor == what.tensor && place.got == what.got && place.want == what.want &&
             place.handle == what.handle && place.ordered == what.ordered &&
             place.unordered == what.unordered && place.by == what.by;
    });
    if (known != places.end()) {
      known->ranks.insert(observation->rank);
    } else {
      places.push_back({{observation->rank},
                        what.tensor,
                        what.got,
                        what.want,
                        what.handle,
                        to_string(what.site),
                        observation->at,
                        what.ordered,
                        what.unordered,
                        what.by});
    }
  }
  return places;
}

RankSet ranks_of(const std::vector<const RankObservation*>& alike) {
  RankSet ranks;
  for (const RankObservation* observation : alike) {
    ranks.insert(observation->rank);
  }
  return ranks;
}

// Ranks that made a call on a group that they do not belong to. The call did nothing, which explains why their part is
// missing from a value.
RankSet outsiders(const Evidence& evidence) {
  RankSet ranks;
  for (const RankObservation& observation : evidence.observations) {
    if (observation.what.kind == Kind::stood_outside) {
      ranks.insert(observation.rank);
    }
  }
  return ranks;
}

std::vector<Rank> ranks_given(const std::vector<std::pair<Rank, double>>& given) {
  std::vector<Rank> ranks;
  for (const auto& [rank, value] : given) {
    ranks.push_back(rank);
  }
  return ranks;
}

// If a sum is too large, the rank that contributed most is the likeliest culprit; if it is too small, the rank that
// contributed least.
void suspect_contributors(const Observation& what, Finding& finding) {
  std::vector<std::pair<Rank, double>> given = what.contributions;
  const bool all_known = RankSet::of(ranks_given(given)) == finding.culprits;
  if (given.size() < 2 || what.surplus == 0 || !all_known) {
    return;
  }
  std::ranges::stable_sort(given, [&](const auto& a, const auto& b) {
    return what.surplus > 0 ? a.second > b.second : a.second < b.second;
  });
  if (given[0].second == given[1].second) {
    return;
  }
  finding.suspects = ranks_given(given);
  finding.suspicion =
      fmt::format("rank {} put {} in, the {} of all, and the result is too {}", given[0].first,
                  given[0].second, what.surplus > 0 ? "most" : "least", what.surplus > 0 ? "large" : "small");
}

Verdict judge_checks(const Evidence& evidence, const RankObservation& first) {
  const std::vector<const RankObservation*> alike = likes_of(evidence, first);
  WrongResult wrong;
  wrong.values = places_of(alike);
  Finding& finding = wrong.finding;
  finding.kind = FindingKind::value;
  finding.culprits = ranks_of(alike);
  const auto told = std::ranges::find_if(
      alike, [](const RankObservation* other) { return !other->what.contributions.empty(); });
  if (told != alike.end()) {
    suspect_contributors((*told)->what, finding);
  }
  const RankSet outside = outsiders(evidence);
  finding.culprits.insert(outside);
  word_checks(wrong.values, outside, finding);
  return wrong;
}

Verdict judge_touches(const Evidence& evidence, const RankObservation& first) {
  const std::vector<const RankObservation*> alike = likes_of(evidence, first);
  Race race;
  race.touched = places_of(alike);
  Finding& finding = race.finding;
  switch (first.what.access) {
    case Observation::Access::read:
      finding.kind = FindingKind::read_before_wait;
      break;
    case Observation::Access::write:
      finding.kind = FindingKind::write_before_wait;
      break;
    case Observation::Access::free:
      finding.kind = FindingKind::free_before_wait;
      break;
  }
  finding.culprits = ranks_of(alike);
  finding.at = Place{name_call(evidence, first.what.op, first.what.seq), {}, {}};
  word_touches(race.touched, finding);
  return race;
}

Verdict judge_stale_updates(const Evidence& evidence, const RankObservation& first) {
  const std::vector<const RankObservation*> alike = likes_of(evidence, first);
  WrongResult wrong;
  wrong.values = places_of(alike);
  Finding& finding = wrong.finding;
  finding.kind = FindingKind::stale_shard;
  finding.culprits = ranks_of(alike);
  word_stale_shards(wrong.values, finding);
  return wrong;
}

// For what ranks did with the handle of a call of their own.
Finding blame_for_handle(const Evidence& evidence, const RankObservation& first, FindingKind kind) {
  Finding finding;
  finding.kind = kind;
  finding.culprits = ranks_of(likes_of(evidence, first));
  finding.at = Place{name_call(evidence, first.what.op, first.what.seq), finding.culprits, {}};
  return finding;
}

Verdict judge_second_waits(const Evidence& evidence, const RankObservation& first) {
  Deadlock deadlock;
  deadlock.finding = blame_for_handle(evidence, first, FindingKind::waited_twice);
  word_second_wait(deadlock.finding);
  return deadlock;
}

Verdict judge_dropped_messages(const Evidence& evidence, const RankObservation& first) {
  Race race;
  race.finding = blame_for_handle(evidence, first, FindingKind::drop_before_wait);
  word_dropped_message(first.what.op.kind == OpKind::send, race.finding);
  return race;
}

Verdict judge_left_handles(const Evidence& evidence, const RankObservation& first) {
  ResourceLeak leak;
  Finding& finding = leak.finding;
  finding.kind = FindingKind::work_never_waited;
  for (const RankObservation& other : evidence.observations) {
    if (other.what.kind == Kind::left_unwaited) {
      finding.culprits.insert(other.rank);
      leak.calls.push_back({{other.rank}, name_call(evidence, other.what.op, other.what.seq)});
    }
  }
  finding.at = Place{name_call(evidence, first.what.op, first.what.seq), {}, {}};
  word_left_handles(finding);
  return leak;
}

Verdict judge_roots(const Evidence& evidence, const RankObservation& first) {
  Mismatch mismatch;
  Finding& finding = mismatch.finding;
  finding.kind = FindingKind::root_not_in_group;
  finding.culprits = ranks_of(likes_of(evidence, first));
  finding.at = Place{name_call(evidence, first.what.op, std::max<std::int64_t>(first.what.seq, 0)), {}, {}};
  word_roots(evidence, first.what, finding);
  return mismatch;
}

}  // namespace

const RankObservation* first_observation(const Evidence& evidence, std::initializer_list<Kind> kinds) {
  const auto found = std::ranges::find_if(evidence.observations, [&](const RankObservation& observation) {
    return std::ranges::find(kinds, observation.what.kind) != kinds.end();
  });
  return found == evidence.observations.end() ? nullptr : &*found;
}

Verdict judge_observation(const Evidence& evidence, const RankObservation& first) {
  switch (first.what.kind) {
    case Kind::check_failed:
      return judge_checks(evidence, first);
    case Kind::touched_early:
      return judge_touches(evidence, first);
    case Kind::stale_gradient:
      return judge_stale_updates(evidence, first);
    case Kind::waited_again:
      return judge_second_waits(evidence, first);
    case Kind::dropped:
      return judge_dropped_messages(evidence, first);
    case Kind::left_unwaited:
      return judge_left_handles(evidence, first);
    case Kind::foreign_root:
    case Kind::stood_outside:
    case Kind::hook_notifies:
      break;
  }
  return judge_roots(evidence, first);
}

// ---- Calls that never complete ----

namespace {

// True if all ranks that arrived have continued and the others missed nothing: without elements, Gloo's rings send
// nothing.
bool is_over_without_others(const Slot& slot) {
  return slot.reference.numel == 0 && !slot.through.empty() &&
         std::ranges::count(slot.through, true) == slot.arrived;
}

// Finds the slots that some members reached and that the run left behind. Not those in which ranks gave up, because
// those ranks waited.
void find_open_slots(const Evidence& evidence, std::vector<Place>& open) {
  for (const GroupEvidence& group : evidence.groups) {
    const GroupMatcher& matcher = *group.matcher;
    for (std::int64_t seq = matcher.first_live(); seq < matcher.end(); ++seq) {
      const Slot& slot = *matcher.find(seq);
      if (slot.phase != Slot::Phase::collecting || slot.given_up || is_over_without_others(slot)) {
        continue;
      }
      Place place;
      for (Rank member = 0; member < matcher.size(); ++member) {
        const Rank global = group.members->ranks[static_cast<std::size_t>(member)];
        (slot.has(member) ? place.waiting : place.missing).insert(global);
      }
      const Rank lowest = group.members->rank_of(place.waiting.first());  // whichever was first to arrive
      place.call = name_call(evidence, matcher.op_of(slot, lowest), seq);
      open.push_back(std::move(place));
    }
  }
}

void find_open_messages(const Evidence& evidence, std::vector<Place>& open) {
  for (const GroupEvidence& group : evidence.groups) {
    if (group.messages == nullptr) {
      continue;
    }
    for (const MessageId id : group.messages->pending()) {
      const Message& message = group.messages->at(id);
      Place place;
      place.call = name_call(evidence, message.op, message.seq);
      place.waiting = {group.members->ranks[static_cast<std::size_t>(message.op.rank)]};
      if (place.call.peer >= 0) {
        place.missing = {place.call.peer};
      }
      open.push_back(std::move(place));
    }
  }
}

// Blames the minority: the few that made a call that most did not, or the few that did not make it. If both sides are
// equally large, the ranks that made it come first: they hold the handle that they never wait for.
void blame_leak(const Place& place, Finding& finding) {
  if (place.waiting.size() > place.missing.size()) {
    finding.culprits = place.missing;
    return;
  }
  finding.culprits = place.waiting;
  if (place.waiting.size() == place.missing.size()) {
    finding.tie = true;
    finding.culprits.insert(place.missing);
    suspect(place.waiting, {}, finding);
  }
}

}  // namespace

Verdict judge_open_calls(const Evidence& evidence) {
  std::vector<Place> open;
  find_open_slots(evidence, open);
  find_open_messages(evidence, open);
  if (open.empty()) {
    return Completed{};
  }
  ResourceLeak leak;
  Finding& finding = leak.finding;
  finding.kind = FindingKind::work_never_completed;
  finding.at = open.front();
  blame_leak(open.front(), finding);
  for (const Place& place : open) {
    leak.calls.push_back({place.waiting, place.call});
  }
  word_open_calls(open.size(), finding);
  return leak;
}

}  // namespace rollcall::check
