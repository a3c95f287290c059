#include "sim/judge/judge.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "sim/base/expects.h"
#include "sim/judge/judge_parts.h"
#include "sim/judge/suspects.h"
#include "sim/match/naming.h"
#include "sim/match/wait_graph.h"
#include "sim/wording/phrasing.h"
#include "sim/wording/wording.h"
#include "sim/wording/wording_host.h"
#include "sim/wording/wording_messages.h"

namespace rollcall::check {
namespace {

// The first observation that is a mistake in itself. (A call on a group that the rank is not in is only a hint about
// other mistakes.)
const RankObservation* first_mistake(const Evidence& evidence) {
  using Kind = Observation::Kind;
  return first_observation(evidence, {Kind::check_failed, Kind::touched_early, Kind::foreign_root,
                                      Kind::waited_again, Kind::dropped});
}

// A wrong value after mispaired calls is their result.
std::optional<Verdict> judge_first_mistake(const Evidence& evidence) {
  Verdict verdict = judge_observation(evidence, *first_mistake(evidence));
  if (Finding& finding = *finding_of(verdict); finding.kind == FindingKind::value) {
    attach_divergence(evidence, world_group, std::numeric_limits<std::int64_t>::max(), finding);
  }
  return verdict;
}

Verdict judge_device(const Evidence& evidence) {
  const DeviceIncident& incident = *evidence.device;
  DeviceMismatch mismatch;
  Finding& finding = mismatch.finding;
  finding.kind = incident.kind;
  finding.culprits = RankSet::of(incident.ranks);
  finding.at = Place{name_call(evidence, incident.op, incident.seq), {}, {}};
  finding.at->call.device = to_string(incident.op.device);
  word_device(evidence, incident, finding);
  mismatch.variants = {{finding.culprits, finding.at->call}};
  return mismatch;
}

Place place_of(const Evidence& evidence, const BlockedSlot& slot) {
  return {name_waiting_call(evidence, slot.waiting.front()), RankSet::of(slot.waiting),
          RankSet::of(slot.missing)};
}

// The ranks missing in a slot that are to blame: those that could still have arrived are not.
RankSet gone_from(const Evidence& evidence, const BlockedSlot& slot) {
  RankSet gone;
  for (const Rank rank : slot.missing) {
    if (!evidence.status_of(rank).waits()) {
      gone.insert(rank);
    }
  }
  return gone;
}

RankSet failed_among(const Evidence& evidence, const RankSet& ranks) {
  RankSet failed;
  for (const Rank rank : ranks.to_vector()) {
    if (evidence.status_of(rank).has_failed()) {
      failed.insert(rank);
    }
  }
  return failed;
}

void blame_missing(const Evidence& evidence, const std::vector<BlockedSlot>& slots, const Blame& blame,
                   Finding& finding) {
  // A slot whose missing rank crashed explains more than one whose missing rank finished.
  const auto crashed = std::ranges::find_if(blame.slots, [&](std::size_t i) {
    return !failed_among(evidence, gone_from(evidence, slots[i])).empty();
  });
  const BlockedSlot& slot = slots[crashed != blame.slots.end() ? *crashed : blame.slots.front()];
  const RankSet gone = gone_from(evidence, slot);
  finding.at = place_of(evidence, slot);
  finding.culprits = RankSet::of(blame.culprits);
  if (!failed_among(evidence, gone).empty()) {
    finding.kind = FindingKind::rank_crashed;
    finding.culprits = failed_among(evidence, finding.culprits);
    if (gave_up_in_store(evidence, finding.culprits)) {
      blame_for_timeout_in_store(finding);
      return;
    }
  } else if (is_point_to_point(slot.kind)) {
    finding.kind = slot.kind == OpKind::send ? FindingKind::unmatched_send : FindingKind::unmatched_recv;
    word_unmatched(evidence, gone, finding);
    return;
  } else if (slot.channel == Channel::store) {
    blame_for_key(evidence, slot, gone, finding);
    return;
  } else {
    finding.kind = FindingKind::missing_participant;
    // The minority is to blame: usually the missing ranks, but the waiting ones if only a few ranks make a
    // call. Every member has to make calls about groups.
    const bool few_wait = slot.channel == Channel::collectives && slot.waiting.size() < slot.missing.size() &&
                          gone.size() == slot.missing.size();
    if (few_wait) {
      finding.culprits = finding.at->waiting;
    }
  }
  word_missing(evidence, slot, finding);
}

// The kind of a cycle: sends that meet sends, receives that meet receives, or calls in crossed order.
FindingKind cycle_kind(const std::vector<BlockedSlot>& slots, const Blame& blame) {
  const auto all_are = [&](auto&& test) {
    return std::ranges::all_of(blame.slots, [&](std::size_t i) { return test(slots[i].kind); });
  };
  if (all_are([](OpKind kind) { return kind == OpKind::send; })) {
    return FindingKind::send_send;
  }
  if (all_are([](OpKind kind) { return kind == OpKind::recv; })) {
    return FindingKind::recv_recv;
  }
  return all_are(is_point_to_point) ? FindingKind::p2p_order : FindingKind::order_crossing;
}

// Says which ranks wait for which, in a handful of lines at most.
void draw_chain(const std::vector<Place>& blocked, std::size_t all, Finding& finding) {
  if (all < 2 || !finding.chain.empty()) {
    return;
  }
  for (const Place& place : blocked) {
    finding.chain.push_back(fmt::format("{} {} in {} for {}", ranks_phrase(place.waiting),
                                        place.waiting.size() == 1 ? "waits" : "wait", call_phrase(place.call),
                                        ranks_phrase(place.missing)));
  }
  if (all > blocked.size()) {
    finding.chain.push_back(fmt::format("and {} more calls with waiting ranks", all - blocked.size()));
  }
}

// The messages in which two ranks wait for each other; null where that is not what they do.
struct MessagePair {
  const MessageMatcher* messages = nullptr;
  const Message* one = nullptr;
  const Message* other = nullptr;
};

MessagePair message_pair_of(const Evidence& evidence, const std::vector<BlockedSlot>& slots,
                            const Blame& blame) {
  if (blame.slots.size() != 2) {
    return {};
  }
  const RankStatus& one = evidence.status_of(slots[blame.slots[0]].waiting.front());
  const RankStatus& other = evidence.status_of(slots[blame.slots[1]].waiting.front());
  if (!one.in_message() || !other.in_message() || one.group != other.group) {
    return {};
  }
  const MessageMatcher* messages = evidence.groups[one.group].messages;
  return {messages, &messages->at(one.message), &messages->at(other.message)};
}

// True if one is inside a batch and one outside, on a backend that does not match the two.
bool mixes_batches(const MessagePair& pair) {
  return pair.messages != nullptr && pair.messages->keeps_batches_apart() &&
         pair.one->op.kind != pair.other->op.kind && pair.one->in_batch != pair.other->in_batch;
}

// True if both wait behind sends of their own to the other one, on a backend where the messages of two ranks run one
// after the other.
bool waits_behind_sends(const MessagePair& pair) {
  if (pair.messages == nullptr || !pair.messages->is_ordered()) {
    return false;
  }
  const std::vector<MessageId> pending = pair.messages->pending();
  const auto has_send_before = [&](const Message& message) {
    return std::ranges::any_of(pending, [&](MessageId id) {
      const Message& before = pair.messages->at(id);
      return before.op.kind == OpKind::send && before.op.rank == message.op.rank &&
             before.op.root == message.op.root && before.seq < message.seq &&
             (before.in_batch == message.in_batch || !pair.messages->keeps_batches_apart());
    });
  };
  return has_send_before(*pair.one) && has_send_before(*pair.other);
}

void blame_cycle(const Evidence& evidence, const std::vector<BlockedSlot>& slots, const Blame& blame,
                 Deadlock& deadlock) {
  Finding& finding = deadlock.finding;
  const MessagePair pair = message_pair_of(evidence, slots, blame);
  const bool behind_sends = waits_behind_sends(pair);
  finding.kind = behind_sends ? FindingKind::send_send : cycle_kind(slots, blame);
  finding.culprits = RankSet::of(blame.culprits);
  finding.at = place_of(evidence, slots[blame.slots.front()]);
  for (const std::size_t i : blame.slots) {
    deadlock.cycle.push_back(place_of(evidence, slots[i]));
  }
  word_crossing(evidence, slots, blame, finding);
  if (blame.shortest.size() < blame.culprits.size()) {
    const RankSet shortest = RankSet::of(blame.shortest);
    suspect(shortest, fmt::format("{} in the shortest cycle", with_verb(shortest, "is", "are")), finding);
  }
  const auto any_is = [&](auto&& test) {
    return std::ranges::any_of(blame.slots, [&](std::size_t i) { return test(slots[i]); });
  };
  if (any_is([](const BlockedSlot& slot) { return is_point_to_point(slot.kind); })) {
    word_message_cycle(mixes_batches(pair) ? MessageCycle::mixed_batches
                       : behind_sends      ? MessageCycle::behind_sends
                                           : MessageCycle::plain,
                       finding);
  }
  const auto about_groups =
      std::ranges::find_if(blame.slots, [&](std::size_t i) { return is_about_groups(slots[i].kind); });
  if (about_groups != blame.slots.end()) {
    word_group_cycle(evidence, place_of(evidence, slots[*about_groups]), finding);
  }
  if (any_is([](const BlockedSlot& slot) { return slot.channel == Channel::store; })) {
    word_store_cycle(finding.culprits, finding);
    finding.at = place_of(evidence, slots[blame_in_cycle(slots, blame, finding)]);
  }
}

Verdict judge_deadlock(const Evidence& evidence) {
  const std::vector<BlockedSlot> slots = blocked_slots(evidence);
  const Blame blame = find_blame(evidence, slots);
  Deadlock deadlock;
  Finding& finding = deadlock.finding;
  if (blame.slots.empty()) {
    expects(slots.size() == 1, "blocked ranks wait for somebody who is gone, in a cycle, or all for one key");
    blame_for_key(evidence, slots.front(), {}, finding);
    return deadlock;
  }
  if (blame.cycle) {
    blame_cycle(evidence, slots, blame, deadlock);
  } else {
    blame_missing(evidence, slots, blame, finding);
  }
  for (std::size_t i = 0; i < std::min(slots.size(), Deadlock::blocked_max); ++i) {
    deadlock.blocked.push_back(place_of(evidence, slots[i]));
  }
  draw_chain(deadlock.blocked, slots.size(), finding);
  const BlockedSlot& shown = slots[blame.slots.front()];
  // Messages and calls about groups are numbered separately: a collective's mispairing always precedes them.
  const bool counts_alike = !is_point_to_point(shown.kind) && shown.channel == Channel::collectives;
  attach_divergence(evidence, shown.group,
                    counts_alike ? shown.seq : std::numeric_limits<std::int64_t>::max(), finding);
  return deadlock;
}

Verdict judge_failure(const Evidence& evidence) {
  RankFailed failed;
  Finding& finding = failed.finding;
  finding.kind = FindingKind::raised;
  finding.culprits = failed_among(evidence, RankSet::range(0, static_cast<Rank>(evidence.ranks.size()) - 1));
  RankSet exhausted;
  for (const Rank rank : finding.culprits.to_vector()) {
    if (evidence.exception_of(evidence.status_of(rank))->message.ends_with("exhausted all inputs.")) {
      exhausted.insert(rank);
    }
  }
  if (!exhausted.empty()) {
    finding.kind = FindingKind::early_termination;
    finding.culprits = exhausted;
  }
  word_failure(evidence, finding);
  const Exception& first = *evidence.exception_of(evidence.status_of(finding.culprits.first()));
  failed.exception = first.type + ": " + first.message;
  return failed;
}

Verdict judge_limit(const Evidence& evidence) {
  LimitReached reached;
  reached.finding.kind = evidence.limit->limit;
  reached.value = evidence.limit->value;
  word_limit(*evidence.limit, reached.finding);
  return reached;
}

template <typename Incident>
Time time_of(const std::optional<Incident>& incident) {
  return incident ? incident->at : never;
}

// The verdict on the earliest event with a known time. Of events at the same time, the one that explains the others.
std::optional<Verdict> judge_first_event(const Evidence& evidence) {
  const RankObservation* mistake = first_mistake(evidence);
  using Judge = std::optional<Verdict> (*)(const Evidence&);
  std::pair<Time, Judge> events[] = {
      {time_of(evidence.store), [](const Evidence& all) { return std::optional(judge_stale_key(all)); }},
      {time_of(evidence.device), [](const Evidence& all) { return std::optional(judge_device(all)); }},
      {time_of(evidence.mismatch), [](const Evidence& all) { return std::optional(judge_mismatch(all)); }},
      {mistake != nullptr ? mistake->at : never, judge_first_mistake},
      {time_of(evidence.timeout), judge_timeout}};
  std::ranges::stable_sort(events, {}, &std::pair<Time, Judge>::first);
  for (const auto& [at, judge_it] : events) {
    if (std::optional<Verdict> verdict = at == never ? std::nullopt : judge_it(evidence)) {
      return verdict;
    }
  }
  return std::nullopt;
}

// Adds the line that raised first.
void say_where_raised(const Evidence& evidence, Verdict& verdict) {
  Finding* finding = finding_of(verdict);
  const bool is_failure = std::holds_alternative<RankFailed>(verdict);
  if (finding == nullptr || evidence.raised_at == nullptr || finding->culprits.empty() ||
      (!is_failure && finding->kind != FindingKind::rank_crashed)) {
    return;
  }
  const auto found = evidence.raised_at->find(finding->culprits.first());
  if (found == evidence.raised_at->end()) {
    return;
  }
  const std::string site = to_string(found->second);
  finding->cause += fmt::format("; the line is {}", site);
  if (is_failure) {
    Call call;
    call.op = "raise";
    call.site = site;
    finding->at = Place{call, {}, {}};
  }
}

Verdict judge_all(const Evidence& evidence) {
  if (std::optional<Verdict> verdict = judge_first_event(evidence)) {
    return *std::move(verdict);
  }
  if (evidence.limit) {
    return judge_limit(evidence);
  }
  if (std::ranges::any_of(evidence.ranks, &RankStatus::waits)) {
    return judge_deadlock(evidence);
  }
  if (std::ranges::any_of(evidence.ranks, &RankStatus::has_failed)) {
    return judge_failure(evidence);
  }
  if (evidence.mispairing) {
    return judge_mispairing(evidence);
  }
  if (const RankObservation* update = first_observation(evidence, {Observation::Kind::stale_gradient})) {
    return judge_observation(evidence, *update);
  }
  if (Verdict verdict = judge_open_calls(evidence); finding_of(verdict) != nullptr) {
    return verdict;
  }
  if (const RankObservation* left = first_observation(evidence, {Observation::Kind::left_unwaited})) {
    return judge_observation(evidence, *left);
  }
  return evidence.leaks.empty() ? Completed{} : judge_leaks(evidence);
}

// A rank that waits for the world to be destroyed is done with its program.
bool waits_to_end(const RankStatus& status) {
  return status.waits() && status.group == world_group && status.channel == Channel::destroy;
}

// True if a rank waits in a call that a rank at the end of its program will not make, or gave up there and raised.
bool any_is_left_behind(const Evidence& evidence) {
  const bool gave_up = evidence.timeout && std::ranges::any_of(evidence.ranks, &RankStatus::has_failed);
  return gave_up || std::ranges::any_of(evidence.ranks, [](const RankStatus& status) {
           return status.waits() && !waits_to_end(status);
         });
}

// On some backends, destroying the world blocks a program at its end; on others it does not. The judgment is the same:
// a rank that got there without the calls that others wait for has finished without them. If no rank waits elsewhere,
// the destruction itself hangs; then this returns null.
std::optional<std::vector<RankStatus>> with_the_ended_gone(const Evidence& evidence) {
  if (std::ranges::none_of(evidence.ranks, waits_to_end) || !any_is_left_behind(evidence)) {
    return std::nullopt;  // the states stay as they are
  }
  std::vector<RankStatus> ranks(evidence.ranks.begin(), evidence.ranks.end());
  for (RankStatus& status : ranks) {
    status.state = waits_to_end(status) ? RankStatus::State::finished : status.state;
  }
  return ranks;
}

Verdict judge_settled(const Evidence& evidence) {
  Verdict verdict = judge_all(evidence);
  expects(occurs_with(kind_of(verdict), verdict_word(verdict)), "a finding has a kind that its verdict has");
  say_where_raised(evidence, verdict);
  blame_key_owners(evidence, verdict);
  return verdict;
}

}  // namespace

Verdict judge(const Evidence& evidence) {
  const std::optional<std::vector<RankStatus>> ranks = with_the_ended_gone(evidence);
  if (!ranks) {
    return judge_settled(evidence);
  }
  Evidence settled = evidence;
  settled.ranks = *ranks;
  return judge_settled(settled);
}

}  // namespace rollcall::check
