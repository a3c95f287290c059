// Sentences about ranks that wait, raised, or were stopped. wording_calls.cc has the findings that compare calls,
// wording_devices.cc those about devices.

#include "sim/wording/wording.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "sim/match/naming.h"
#include "sim/report/stopped.h"
#include "sim/wording/on_backend.h"
#include "sim/wording/phrasing.h"
#include "sim/wording/wording_host.h"

namespace rollcall::check {
namespace {

constexpr const char* even_inputs_advice =
    "wrap the loop in Join (torch.distributed.algorithms.join.Join, with enable=True), or give every rank "
    "the same number of inputs (drop_last=True, DistributedSampler)";
constexpr const char* even_inputs_without_join_advice =
    "give every rank the same number of inputs (drop_last=True, DistributedSampler)";
constexpr const char* extra_call_advice =
    "move the collective out of the branch that only some ranks take, or let every rank of the group take it";
constexpr const char* left_early_advice =
    "let every rank of the group reach this call: look for a branch, an early return or a loop bound that "
    "depends on the rank";

// Join knows DistributedDataParallel, ZeroRedundancyOptimizer and the script's own Joinables, but not what torch calls
// for these.
bool may_be_joined(const Call& call) {
  constexpr std::string_view others[] = {"fsdp.", "pipeline.", "dtensor."};
  return std::ranges::none_of(others,
                              [&](std::string_view prefix) { return call.label.starts_with(prefix); });
}

const char* advice_for_inputs(const Call& call) {
  return may_be_joined(call) ? even_inputs_advice : even_inputs_without_join_advice;
}

// How many inputs these ranks took: the fewest and the most of them. -1 if they are not counted.
struct InputRange {
  std::int64_t fewest = -1;
  std::int64_t most = -1;
  bool ran_out = true;  // all of them
};

InputRange inputs_of(const Evidence& evidence, const RankSet& ranks) {
  InputRange inputs{evidence.status_of(ranks.first()).inputs, -1};
  for (const Rank rank : ranks.to_vector()) {
    inputs.fewest = std::min(inputs.fewest, evidence.status_of(rank).inputs);
    inputs.most = std::max(inputs.most, evidence.status_of(rank).inputs);
    inputs.ran_out = inputs.ran_out && evidence.status_of(rank).ran_out;
  }
  return inputs;
}

// True if all ranks in `fewer` had the same number of inputs, and all ranks in `more` took more.
bool ran_out_before(const InputRange& fewer, const InputRange& more) {
  return fewer.ran_out && fewer.fewest >= 0 && fewer.fewest == fewer.most && more.fewest > fewer.most;
}

// As much of an exception's text as fits a sentence; the rank's state has all of it.
std::string beginning_of(const std::string& message) {
  constexpr std::size_t length_max = 160;
  std::string text = message.substr(0, message.find('\n'));
  if (text.size() > length_max) {
    const std::size_t blank = text.rfind(' ', length_max);
    text.resize(blank == std::string::npos ? length_max : blank);
  }
  if (text.size() < message.size()) {
    return text + " ...";
  }
  text.resize(text.find_last_not_of(". ") + 1);  // the sentence goes on
  return text;
}

bool ended_by(const Evidence& evidence, Rank rank, std::string_view type) {
  const Exception* exception = evidence.exception_of(evidence.status_of(rank));
  return exception != nullptr && exception->type == type;
}

std::string exception_in_brief(const Evidence& evidence, Rank rank) {
  const Exception* exception = evidence.exception_of(evidence.status_of(rank));
  if (exception == nullptr) {
    return "an exception";
  }
  return exception->message.empty() ? exception->type
                                    : exception->type + ": " + beginning_of(exception->message);
}

// A rank whose process died raised nothing; a recording says that it was killed.
bool have_died(const Evidence& evidence, const RankSet& ranks) {
  return std::ranges::all_of(ranks.to_vector(), [&](Rank rank) {
    return evidence.status_of(rank).state == RankStatus::State::crashed ||
           ended_by(evidence, rank, killed_type);
  });
}

// The ranks' recorders stopped all of them. Nobody raised anything.
bool were_stopped(const Evidence& evidence, const RankSet& ranks) {
  return std::ranges::all_of(ranks.to_vector(),
                             [&](Rank rank) { return ended_by(evidence, rank, stopped_type); });
}

const char* how_it_ended(const Evidence& evidence, const RankSet& ranks) {
  return have_died(evidence, ranks)      ? "died"
         : were_stopped(evidence, ranks) ? "made no further call"
                                         : "raised";
}

// What else is known of an exception's cause, from its text.
const char* advice_for_exception(const std::string& text) {
  if (text.find("Expected to have finished reduction in the prior iteration") != std::string::npos) {
    return "let every parameter take part in the loss, or pass find_unused_parameters=True to "
           "DistributedDataParallel";
  }
  return "fix the exception";
}

constexpr const char* find_the_killer =
    "find out what ended the process: out of memory (dmesg), a fault in native code (a core dump), the "
    "scheduler";

// "ranks 0,2 raised ValueError: bad sample; ranks 1,3 raised other exceptions".
std::string who_raised(const Evidence& evidence, const RankSet& ranks) {
  if (were_stopped(evidence, ranks)) {
    return fmt::format("{} made no call for too long, and {} stopped", ranks_phrase(ranks),
                       is_plural(ranks) ? "were" : "was");
  }
  const std::string first = exception_in_brief(evidence, ranks.first());
  RankSet alike;
  for (const Rank rank : ranks.to_vector()) {
    if (exception_in_brief(evidence, rank) == first) {
      alike.insert(rank);
    }
  }
  const RankSet others = difference(ranks, alike);
  const bool died = have_died(evidence, alike);
  const std::string killed = std::string(killed_type) + ": ";
  std::string text = first.starts_with(killed)
                         ? fmt::format("{} died: {}", ranks_phrase(alike), first.substr(killed.size()))
                         : fmt::format("{} {} {}", ranks_phrase(alike), died ? "died of" : "raised", first);
  return others.empty() ? text
                        : text + fmt::format("; {}", with_verb(others, "raised another exception",
                                                               "raised other exceptions"));
}

// The culprits that this call waits for. There may be others, missing in other calls.
RankSet blamed_at(const Place& place, const Finding& finding) {
  return intersection(place.missing, finding.culprits);
}

void word_crash(const Evidence& evidence, const Place& place, Finding& finding) {
  const RankSet gone = blamed_at(place, finding);
  finding.headline = fmt::format("{} {} before {}; {} for {}", ranks_phrase(gone),
                                 how_it_ended(evidence, gone), call_phrase(place.call),
                                 with_verb(place.waiting, "waits", "wait"), is_plural(gone) ? "them" : "it");
  if (were_stopped(evidence, gone)) {
    finding.cause = fmt::format("{}; the other ranks do not know this and wait", who_raised(evidence, gone));
    finding.advice =
        "look at what that line waits for: a lock, a file, a queue, a thread, or a loop that does not end";
    finding.on_backend = hang_on_backend(evidence, place);
    return;
  }
  finding.cause = fmt::format("{}; the other ranks do not know this and wait in their next collective",
                              who_raised(evidence, gone));
  finding.advice =
      have_died(evidence, gone)
          ? fmt::format("{}; let the launcher end the job, so that no rank waits for it", find_the_killer)
          : fmt::format(
                "{}; let a rank that catches an exception tell the others (a flag in an all_reduce) or abort "
                "the job, so that no rank waits for it",
                advice_for_exception(exception_in_brief(evidence, gone.first())));
  finding.on_backend = crash_on_backend(evidence.backend, place.call.op);
}

// A few ranks wait in a call that most of the group has finished without.
void word_extra_call(const Evidence& evidence, const Place& place, Finding& finding) {
  finding.headline = fmt::format("only {} {} {}; {} finished without it", ranks_phrase(place.waiting),
                                 is_plural(place.waiting) ? "call" : "calls", call_phrase(place.call),
                                 with_verb(place.missing, "has", "have"));
  const InputRange more = inputs_of(evidence, place.waiting);
  const InputRange fewer = inputs_of(evidence, place.missing);
  if (ran_out_before(fewer, more)) {
    finding.cause =
        fmt::format("{} input {}; {} ran out after {}", with_verb(place.waiting, "processes", "process"),
                    more.fewest, ranks_phrase(place.missing), fewer.most);
    finding.advice = advice_for_inputs(place.call);
    return;
  }
  finding.cause = fmt::format("the {}{} is reached by {} alone", place.call.op, origin_of(place.call),
                              ranks_phrase(place.waiting));
  finding.advice = extra_call_advice;
}

// True if these ranks wait in destroy_process_group, for those that are still in the group.
bool are_leaving(const Evidence& evidence, const RankSet& ranks) {
  return std::ranges::all_of(ranks.to_vector(), [&](Rank rank) {
    return evidence.status_of(rank).waits() &&
           name_waiting_call(evidence, rank).op == to_string(OpKind::destroy_process_group);
  });
}

void word_left_early(const Evidence& evidence, const Place& place, Finding& finding) {
  const RankSet missing = blamed_at(place, finding);
  finding.headline =
      fmt::format("{} never called {} ({} of {} ranks wait)", ranks_phrase(missing), call_phrase(place.call),
                  place.waiting.size(), place.waiting.size() + place.missing.size());
  if (place.call.op == to_string(OpKind::batch_isend_irecv)) {
    word_no_communicator(evidence, place, missing, finding);
    return;
  }
  const InputRange inputs = inputs_of(evidence, missing);
  const InputRange others = inputs_of(evidence, place.waiting);
  if (ran_out_before(inputs, others)) {
    finding.cause = fmt::format("{} ran out of inputs after {}; {} for {} part of input {}",
                                ranks_phrase(missing), inputs.most, with_verb(place.waiting, "waits", "wait"),
                                is_plural(missing) ? "their" : "its", others.fewest);
    finding.advice = advice_for_inputs(place.call);
    return;
  }
  const std::string call = place.call.op + origin_of(place.call);
  finding.cause =
      are_leaving(evidence, missing)
          ? fmt::format("{} reached destroy_process_group without the {}", ranks_phrase(missing), call)
          : fmt::format("{} finished {} program without the {}", ranks_phrase(missing),
                        is_plural(missing) ? "their" : "its", call);
  if (is_host_call(place.call.op)) {
    finding.advice = group_call_advice(evidence, place.call.op);
    return;
  }
  finding.advice = left_early_advice;
}

// "rank 0 waits in barrier #2 on tp for rank 1, and rank 1 in all_reduce #5 on dp for rank 0".
std::string two_waits(const Evidence& evidence, const BlockedSlot& first, const BlockedSlot& second) {
  const RankSet one = RankSet::of(first.waiting);
  const RankSet other = RankSet::of(second.waiting);
  return fmt::format("{} in {} for {}, and {} in {} for {}", with_verb(one, "waits", "wait"),
                     call_phrase(name_waiting_call(evidence, first.waiting.front())),
                     ranks_phrase(RankSet::of(first.missing)), ranks_phrase(other),
                     call_phrase(name_waiting_call(evidence, second.waiting.front())),
                     ranks_phrase(RankSet::of(second.missing)));
}

}  // namespace

void word_missing(const Evidence& evidence, const BlockedSlot&, Finding& finding) {
  const Place& place = *finding.at;
  finding.on_backend = hang_on_backend(evidence, place);
  if (finding.kind == FindingKind::rank_crashed) {
    word_crash(evidence, place, finding);
  } else if (finding.culprits == place.waiting) {
    word_extra_call(evidence, place, finding);
  } else {
    word_left_early(evidence, place, finding);
  }
}

bool needs_history(const Finding& finding) {
  if (finding.kind == FindingKind::unmatched_send || finding.kind == FindingKind::unmatched_recv) {
    return finding.at.has_value() && finding.at->call.peer >= 0;
  }
  return finding.kind == FindingKind::missing_participant &&
         (finding.advice == extra_call_advice || finding.advice == left_early_advice);
}

namespace {

std::string times(std::size_t count) {
  return count == 1 ? std::string("once") : count == 2 ? "twice" : fmt::format("{} times", count);
}

}  // namespace

std::string advice_for_iterations(const Call& call) {
  return fmt::format(
      "let every rank run the same number of iterations: no break, continue or no_sync that depends on the "
      "rank; if inputs run out, give every rank the same number of steps (DistributedSampler, "
      "drop_last=True){}",
      may_be_joined(call) ? ", or wrap the loop in Join (torch.distributed.algorithms.join.Join)" : "");
}

void word_uneven_steps(const RankSet& ended, std::size_t made, std::size_t wanted, Finding& finding) {
  const Place& place = *finding.at;
  finding.cause =
      fmt::format("{} made the {}{} {}, and {} in number {}", ranks_phrase(ended), place.call.op,
                  origin_of(place.call), times(made), with_verb(place.waiting, "waits", "wait"), wanted);
  finding.advice = advice_for_iterations(place.call);
}

void word_extra_headline(Finding& finding) {
  if (finding.kind != FindingKind::missing_participant || !finding.at ||
      finding.culprits != finding.at->waiting || finding.headline.starts_with("only ")) {
    return;
  }
  const Place& place = *finding.at;
  finding.headline = fmt::format("only {} {} {}; {} not", ranks_phrase(place.waiting),
                                 is_plural(place.waiting) ? "call" : "calls", call_phrase(place.call),
                                 with_verb(place.missing, "does", "do"));
}

void word_left_loop(const RankSet& gone, std::size_t made, const Variant& left, bool others_follow,
                    Finding& finding) {
  finding.cause += fmt::format("; {} made this {} {}, and {} in number {}", ranks_phrase(gone), left.call.op,
                               times(made), with_verb(left.ranks, "is", "are"), made + 1);
  if (others_follow) {
    finding.advice = advice_for_iterations(left.call);
  }
}

void word_uneven_statement(const RankSet& ended, std::size_t made, std::size_t wanted,
                           const std::string& call, Finding& finding) {
  const RankSet& waiting = finding.at->waiting;
  const auto makes = [&](const RankSet& ranks, std::size_t count) {
    return fmt::format("{} the {} {}", with_verb(ranks, "makes", "make"), call, times(count));
  };
  const std::string others = made == 0 ? fmt::format("{} it", with_verb(ended, "never makes", "never make"))
                                       : fmt::format("{} {}", ranks_phrase(waiting), times(wanted));
  finding.cause = fmt::format("{}, and {}; the calls after it have met others of the same size",
                              made == 0 ? makes(waiting, wanted) : makes(ended, made), others);
  finding.advice = finding.culprits == waiting ? extra_call_advice : left_early_advice;
}

void word_fewer_calls(const RankSet& ended, Finding& finding) {
  const RankSet& waiting = finding.at->waiting;
  const Call& call = finding.at->call;
  finding.cause = fmt::format(
      "{} made fewer calls on {} than {}; the one that makes the difference may be an earlier one, since "
      "calls of the same size meet",
      ranks_phrase(ended), call.group, ranks_phrase(waiting));
}

void word_last_call(const RankSet& ended, const std::string& call, Finding& finding) {
  finding.cause += fmt::format("; the last call of {} is the {}", ranks_phrase(ended), call);
}

void word_crossing(const Evidence& evidence, const std::vector<BlockedSlot>& slots, const Blame& blame,
                   Finding& finding) {
  finding.headline = fmt::format("{} wait for each other in {}", ranks_phrase(finding.culprits),
                                 blame.cycles > 1 ? fmt::format("{} cycles", blame.cycles) : "a cycle");
  if (blame.cycles == 1 && blame.slots.size() == 2) {
    finding.headline = two_waits(evidence, slots[blame.slots[0]], slots[blame.slots[1]]);
  }
  finding.cause =
      "the ranks issue the collectives of several groups in different orders, so each waits in a call that "
      "the next one has not reached";
  if (wait_for_communicator(evidence, *finding.at)) {
    finding.cause +=
        "; a group's first call makes its communicator, which holds up its host, even if the call is "
        "asynchronous";
  }
  finding.advice = groups_in_one_order;
  finding.on_backend = hang_on_backend(evidence, *finding.at);
  for (const std::size_t i : blame.slots) {
    const BlockedSlot& slot = slots[i];
    const Call call = name_waiting_call(evidence, slot.waiting.front());
    finding.chain.push_back(fmt::format("{} in {} for {}",
                                        with_verb(RankSet::of(slot.waiting), "waits", "wait"),
                                        call_phrase(call), ranks_phrase(RankSet::of(slot.missing))));
  }
}

void word_failure(const Evidence& evidence, Finding& finding) {
  finding.headline = who_raised(evidence, finding.culprits);
  if (finding.kind == FindingKind::early_termination) {
    finding.cause = fmt::format(
        "throw_on_early_termination is set and {} ran out of inputs first, so Join stopped every rank",
        ranks_phrase(finding.culprits));
    finding.advice =
        "catch the RuntimeError around the Join context if an early end is wanted; otherwise drop "
        "throw_on_early_termination";
    return;
  }
  const bool died = have_died(evidence, finding.culprits);
  finding.cause = fmt::format(
      "{}; no other rank was waiting for {}",
      died ? "the process died" : with_verb(finding.culprits, "raised an exception", "raised exceptions"),
      is_plural(finding.culprits) ? "them" : "it");
  const bool are_all = finding.culprits.size() == evidence.ranks.size();
  finding.advice = fmt::format(
      "{}{}",
      died ? find_the_killer : advice_for_exception(exception_in_brief(evidence, finding.culprits.first())),
      are_all ? "" : "; the other ranks are not involved");
}

namespace {

struct LimitWords {
  FindingKind kind;
  std::string (*headline)(std::int64_t value);
  const char* cause;
  const char* advice;
};

constexpr std::int64_t mebi = 1024 * 1024;

std::string memory_headline(std::int64_t bytes) {
  return bytes == 0 ? "stopped because there was no memory left"
                    : fmt::format("stopped at {} MiB of memory", bytes / mebi);
}

constexpr LimitWords limit_words[] = {
    {FindingKind::ops,
     [](std::int64_t value) { return fmt::format("stopped after {} operations and loop iterations", value); },
     "the program does not end, or needs more steps than limits.ops allows",
     "look for an endless loop; raise limits.ops if the program is meant to be this long"},
    {FindingKind::simulated_time,
     [](std::int64_t value) { return fmt::format("stopped at {} ns of simulated time", value); },
     "the program needs more simulated time than limits.simulated_time allows",
     "look for an endless loop; raise limits.simulated_time if the program is meant to be this long"},
    {FindingKind::output_lines,
     [](std::int64_t value) { return fmt::format("stopped after {} printed lines", value); },
     "the program prints in a loop that does not end, or more than a report can hold",
     "look for an endless loop; print less often"},
    {FindingKind::store_size,
     [](std::int64_t value) { return fmt::format("stopped at {} MiB in the store", value / mebi); },
     "a rank sets keys in a loop that does not end, or keeps data in the store that belongs in tensors",
     "look for an endless loop; delete keys that are no longer needed"},
    {FindingKind::pending_calls,
     [](std::int64_t value) {
       return fmt::format("stopped with {} collectives of one group in flight", value);
     },
     "a rank issues asynchronous calls in a loop and never waits for them",
     "wait for the calls, or look for an endless loop"},
    {FindingKind::memory, memory_headline,
     "tensors, calls in flight or the timeline need more memory than the simulation may use",
     "simulate fewer ranks or smaller tensors, leave out --timeline, --trace and pages; raise limits.memory "
     "if there is more"},
    {FindingKind::deadline,
     [](std::int64_t value) { return fmt::format("stopped by the deadline after {} ms", value); },
     "some rank was still at work, so what the others wait for could still have come",
     "check where the ranks are; give the run a longer --deadline if they only need more time"},
    {FindingKind::never_connected,
     [](std::int64_t value) {
       return fmt::format("the ranks did not connect to each other within {} s", value / 1000);
     },
     "all of them came, but some connection between them was not made, or was lost at once",
     "check that their machines reach each other, and by which interface (GLOO_SOCKET_IFNAME, "
     "NCCL_SOCKET_IFNAME)"},
    {FindingKind::interrupted,
     [](std::int64_t value) {
       return fmt::format("the recording was interrupted while {} {} still at work", value,
                          value == 1 ? "rank was" : "ranks were");
     },
     "what these ranks would have called next is not known: what the others wait for could still have come",
     "check where the ranks were when the recording ended; record the script to its end for a verdict"},
    {FindingKind::stalled,
     [](std::int64_t value) {
       return fmt::format("{} went past the point where the recorded job stood still",
                          value == 1 ? "1 rank" : fmt::format("{} ranks", value));
     },
     "the recording ends there: what the ranks would have called next is not known",
     "record the script again: it may run to its end now"},
};

void word_absence(const LimitIncident& incident, Finding& finding) {
  finding.culprits = incident.absent;
  finding.headline = fmt::format("{} did not come within {} s: no rank could begin",
                                 ranks_phrase(incident.absent), incident.value / 1000);
  finding.cause = fmt::format("{} not started, ended early, or cannot reach the address of rank 0",
                              is_plural(incident.absent) ? "their processes were" : "its process was");
  finding.advice =
      fmt::format("look at what the launcher says about {}; check MASTER_ADDR and MASTER_PORT there",
                  is_plural(incident.absent) ? "them" : "it");
}

}  // namespace

void word_limit(const LimitIncident& incident, Finding& finding) {
  const LimitWords& words = row_of(limit_words, incident.limit);
  finding.headline = words.headline(incident.value);
  finding.cause = words.cause;
  finding.advice = words.advice;
  if (!incident.absent.empty()) {
    word_absence(incident, finding);
  }
}

}  // namespace rollcall::check
