#include "sim/check/wording.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/check/naming.h"

namespace rollcall::check {
namespace {

const RankStatus& status_of(const Evidence& evidence, Rank rank) {
  return evidence.ranks[static_cast<std::size_t>(rank)];
}

bool is_plural(const RankSet& ranks) { return ranks.size() != 1; }

// "rank 0 waits", "ranks 1-3 wait".
std::string with_verb(const RankSet& ranks, const char* singular, const char* plural) {
  return fmt::format("{} {}", ranks_phrase(ranks), is_plural(ranks) ? plural : singular);
}

// The inputs that all of these ranks took, or -1 when they differ or do not count.
std::int64_t common_inputs(const Evidence& evidence, const RankSet& ranks) {
  const std::int64_t inputs = status_of(evidence, ranks.first()).inputs;
  for (const RankSet::Range& range : ranks.ranges()) {
    for (Rank rank = range.first; rank <= range.last; ++rank) {
      if (status_of(evidence, rank).inputs != inputs) {
        return -1;
      }
    }
  }
  return inputs;
}

std::string exception_of(const Evidence& evidence, Rank rank) {
  const std::int32_t index = status_of(evidence, rank).exception;
  if (index < 0) {
    return "an exception";
  }
  const Exception& exception = evidence.exceptions[static_cast<std::size_t>(index)];
  return exception.message.empty() ? exception.type : exception.type + ": " + exception.message;
}

std::string hang_on_backend(const Evidence& evidence, const Call& call) {
  if (evidence.backend == "gloo") {
    return fmt::format(
        "the waiting ranks block in {} until the group's timeout (30 min by default), then raise "
        "\"Timed out waiting ... for recv operation to complete\"; the missing rank is not named",
        call.op);
  }
  return fmt::format(
      "the waiting ranks hang until the watchdog's timeout (10 min by default), which reports "
      "\"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=...)\" on them; the missing rank is "
      "not named",
      call.op);
}

// Every real backend pairs calls by number alone; DETAIL compares some of what they carry.
std::string mismatch_on_backend(const Evidence& evidence, const std::string& kind) {
  const bool gloo = evidence.backend == "gloo";
  if (kind == "op_mismatch") {
    return "different operations never exchange data: every rank involved hangs until its timeout; "
           "TORCH_DISTRIBUTED_DEBUG=DETAIL would raise instead";
  }
  if (kind == "numel_mismatch") {
    return gloo ? "sizes are not compared: a rank that receives more than it expects aborts "
                  "(gloo::EnforceNotMet), one "
                  "that receives less may finish with garbage or hang; TORCH_DISTRIBUTED_DEBUG=DETAIL would "
                  "raise instead"
                : "counts are not compared: usually a hang, with small tensors silent garbage; "
                  "TORCH_DISTRIBUTED_DEBUG=DETAIL would raise instead";
  }
  if (kind == "dtype_mismatch") {
    return "dtypes are not compared: with equal byte counts the call completes and the bits are misread; "
           "TORCH_DISTRIBUTED_DEBUG=DETAIL would raise instead";
  }
  if (kind == "reduce_op_mismatch") {
    return "reduce ops are not compared, not even under TORCH_DISTRIBUTED_DEBUG=DETAIL: the call completes "
           "and "
           "different parts of the tensor are reduced differently";
  }
  return "roots are not compared, not even under TORCH_DISTRIBUTED_DEBUG=DETAIL: every rank that thinks it "
         "is the "
         "root waits for receivers that never come";
}

std::string place_of(const Call& call) {
  std::string text;
  if (!call.label.empty()) {
    text += fmt::format(" in {}", call.label);
  }
  if (!call.site.empty()) {
    text += fmt::format(" at {}", call.site);
  }
  return text;
}

void word_crash(const Evidence& evidence, const Place& place, Finding& finding) {
  const RankSet& gone = finding.culprits;
  const std::string exception = exception_of(evidence, gone.first());
  finding.headline = fmt::format(
      "{} before {}; {}", with_verb(gone, "raised", "raised"), call_phrase(place.call),
      with_verb(place.waiting, "waits for it", is_plural(gone) ? "wait for them" : "wait for it"));
  finding.cause =
      fmt::format("{} raised \"{}\" and left; the others cannot know and wait in their next collective",
                  ranks_phrase(gone), exception);
  finding.advice =
      "fix the exception; let a rank that catches one tell the others (a flag in an all_reduce) or abort "
      "the job, so that nobody waits for it";
}

void word_extra_call(const Evidence& evidence, const Place& place, Finding& finding) {
  finding.headline = fmt::format("only {} {} {}; {} finished without it", ranks_phrase(place.waiting),
                                 is_plural(place.waiting) ? "call" : "calls", call_phrase(place.call),
                                 with_verb(place.missing, "has", "have"));
  const std::int64_t more = common_inputs(evidence, place.waiting);
  const std::int64_t fewer = common_inputs(evidence, place.missing);
  if (more > fewer && fewer >= 0) {
    finding.cause = fmt::format("{} {} input {} when {} had run out after {}", ranks_phrase(place.waiting),
                                is_plural(place.waiting) ? "process" : "processes", more,
                                ranks_phrase(place.missing), fewer);
    finding.advice =
        "wrap the loop in Join (torch.distributed.algorithms.join), or give every rank the same number of "
        "inputs (drop_last=True, DistributedSampler)";
    return;
  }
  finding.cause =
      fmt::format("{} {} a collective that the other ranks never reach{}", ranks_phrase(place.waiting),
                  is_plural(place.waiting) ? "issue" : "issues", place_of(place.call));
  finding.advice =
      "move the collective out of the branch that only some ranks take, or let every rank of the group "
      "take it";
}

void word_left_early(const Evidence& evidence, const Place& place, Finding& finding) {
  const RankSet& missing = finding.culprits;
  finding.headline =
      fmt::format("{} never called {} ({} of {} ranks wait)", ranks_phrase(missing), call_phrase(place.call),
                  place.waiting.size(), place.waiting.size() + place.missing.size());
  const std::int64_t inputs = common_inputs(evidence, missing);
  if (inputs >= 0) {
    finding.cause = fmt::format("{} ran out of inputs after {}; {} for {} part of input {}",
                                ranks_phrase(missing), inputs, with_verb(place.waiting, "waits", "wait"),
                                is_plural(missing) ? "their" : "its", inputs + 1);
    finding.advice =
        "wrap the loop in Join (torch.distributed.algorithms.join), or give every rank the same number of "
        "inputs (drop_last=True, DistributedSampler)";
    return;
  }
  finding.cause = fmt::format("{} finished {} program without the {}{}", ranks_phrase(missing),
                              is_plural(missing) ? "their" : "its", place.call.op, place_of(place.call));
  finding.advice =
      "let every rank of the group reach this call: look for a branch, an early return or a loop bound that "
      "depends on the rank";
}

}  // namespace

void word_missing(const Evidence& evidence, const BlockedSlot& slot, Finding& finding) {
  static_cast<void>(slot);
  const Place& place = *finding.at;
  finding.on_backend = hang_on_backend(evidence, place.call);
  if (finding.kind == "rank_crashed") {
    word_crash(evidence, place, finding);
  } else if (finding.culprits == place.waiting) {
    word_extra_call(evidence, place, finding);
  } else {
    word_left_early(evidence, place, finding);
  }
}

void word_crossing(const Evidence& evidence, const std::vector<BlockedSlot>& slots, const Blame& blame,
                   Finding& finding) {
  finding.headline = fmt::format("{} wait for each other in a circle", ranks_phrase(finding.culprits));
  finding.cause =
      "the ranks issue the collectives of several groups in different orders, so each waits in a call that "
      "the next one has not reached";
  finding.advice = "issue the collectives of overlapping groups in one order on every rank";
  finding.on_backend = hang_on_backend(evidence, finding.at->call);
  for (const std::size_t i : blame.slots) {
    const BlockedSlot& slot = slots[i];
    const GroupEvidence& group = evidence.groups[slot.group];
    const Call call =
        name_member_call(evidence, slot.group, slot.seq, group.members->rank_of(slot.waiting.front()));
    finding.chain.push_back(
        fmt::format("{} in {}{} for {}", with_verb(RankSet::of(slot.waiting), "waits", "wait"),
                    call_phrase(call), place_of(call), ranks_phrase(RankSet::of(slot.missing))));
  }
}

namespace {

// "rank 0 calls barrier, ranks 1-3 call all_reduce of 4 x float32, SUM". More than three variants are counted.
std::string who_calls_what(std::vector<Variant> variants) {
  std::reverse(variants.begin(), variants.end());  // the odd one first
  std::string text;
  const std::size_t shown = std::min<std::size_t>(variants.size(), 3);
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : "; ", with_verb(variants[i].ranks, "calls", "call"),
                        call_signature(variants[i].call));
  }
  return variants.size() > shown ? text + fmt::format(" and {} more variants", variants.size() - shown)
                                 : text;
}

std::string slot_phrase(const Evidence& evidence, const Incident& incident) {
  return fmt::format("collective #{} on {}", incident.seq, group_name(evidence, incident.group));
}

const char* mismatch_advice(const std::string& kind) {
  if (kind == "op_mismatch") {
    return "let every rank issue the same collectives in the same order; look for one that only some ranks "
           "reach, just "
           "before this one";
  }
  if (kind == "numel_mismatch") {
    return "make the tensors equally large on every rank: pad them, or exchange the sizes first";
  }
  if (kind == "dtype_mismatch") {
    return "convert to one dtype before the call; look for values whose type depends on the data or the "
           "device";
  }
  if (kind == "reduce_op_mismatch") {
    return "pass the same ReduceOp on every rank";
  }
  return "pass the same root on every rank: it is a global rank, not a local one";
}

}  // namespace

void word_mismatch(const Evidence& evidence, const Incident& incident, Finding& finding) {
  finding.headline = fmt::format("ranks disagree in {}: {}", slot_phrase(evidence, incident),
                                 who_calls_what(name_variants(evidence, incident)));
  finding.cause =
      finding.tie ? "the ranks issue different calls where one collective is due, and no majority says which "
                    "is right"
                  : fmt::format("{} from the other ranks where one collective is due",
                                with_verb(finding.culprits, "differs", "differ"));
  finding.advice = mismatch_advice(finding.kind);
  finding.on_backend = mismatch_on_backend(evidence, finding.kind);
}

namespace {

// The shadowing and the active side of an incident, by their first variants.
struct Sides {
  const OpVariant* shadow = nullptr;
  const OpVariant* active = nullptr;
};

Sides sides_of(const Incident& incident) {
  Sides sides;
  for (const OpVariant& variant : incident.variants) {
    const OpVariant*& side = variant.op.shadow ? sides.shadow : sides.active;
    side = side != nullptr ? side : &variant;
  }
  return sides;
}

}  // namespace

void word_hook_mismatch(const Evidence& evidence, const Incident& incident, Finding& finding) {
  const Sides sides = sides_of(incident);
  const Call active = name_call(evidence, sides.active->op, incident.seq);
  const Pairing pairing = evidence.scopes->pairing(sides.active->op.scope);
  const Pairing shadow_pairing = evidence.scopes->pairing(sides.shadow->op.scope);
  RankSet joined;
  RankSet others;
  for (const OpVariant& variant : incident.variants) {
    (variant.op.shadow ? joined : others).insert(RankSet::of(variant.ranks));
  }
  finding.headline = fmt::format("the hooks of joined {} and the iteration of {} part in {}",
                                 ranks_phrase(joined), ranks_phrase(others), slot_phrase(evidence, incident));
  const std::string presence = "join.presence";
  if (!pairing.strict) {
    finding.cause = fmt::format(
        "an active rank issues {}{} inside the loop, outside every joinable, so no main_hook "
        "shadows it",
        active.op, place_of(active));
    finding.advice =
        "issue the collective from a Joinable whose main_hook repeats it, or move it out of the loop";
  } else if (evidence.scopes->pairing_name(shadow_pairing) == presence &&
             evidence.scopes->pairing_name(pairing) != presence) {
    finding.cause =
        "main_hook issues fewer collectives than one iteration of the active ranks, or the joinable never "
        "calls Join.notify_join_context: Join's own count met the joinable's call";
    finding.advice =
        "call notify_join_context first in every iteration, and let main_hook repeat each of the joinable's "
        "collectives, in order";
  } else if (evidence.scopes->pairing_name(pairing) == presence) {
    finding.cause =
        "main_hook issues more collectives than one iteration of the active ranks: the surplus met the next "
        "iteration's presence call";
    finding.advice =
        "remove the surplus collective from main_hook; it must repeat the iteration's calls one for one";
  } else {
    finding.cause = "main_hook's calls are not those of the active ranks' iteration, call for call";
    finding.advice =
        "let main_hook issue the same operation, size, dtype and root as forward does, in the same order";
  }
  finding.on_backend =
      "nothing compares the hook with the iteration: equal byte counts complete silently with wrong "
      "values, everything else hangs or aborts, often later than here";
}

void word_mispairing(const Evidence& evidence, const Incident& incident, Finding& finding) {
  std::string who;
  for (const Variant& variant : name_variants(evidence, incident)) {
    who += fmt::format("{}{} {}", who.empty() ? "" : ", ", ranks_phrase(variant.ranks),
                       variant.call.label.empty() ? "(unlabelled)" : variant.call.label);
  }
  finding.headline =
      fmt::format("{} paired calls from different places: {}", slot_phrase(evidence, incident), who);
  finding.cause =
      "operation, size and dtype agree, so every backend lets the calls pass; the ranks are one call apart";
  finding.advice = "look for a collective that only some ranks reach before this one";
  finding.on_backend = "completes without an error; the values mix unrelated tensors";
}

void word_device(const Evidence& evidence, const DeviceIncident& incident, Finding& finding) {
  const Call call = name_call(evidence, incident.op, incident.seq);
  const RankSet ranks = RankSet::of(incident.ranks);
  switch (incident.kind) {
    case DeviceIncident::Kind::cpu_tensor:
      finding.headline =
          fmt::format("{} {} {} a CPU tensor, and {} takes CUDA tensors only", ranks_phrase(ranks),
                      is_plural(ranks) ? "give" : "gives", call_phrase(call), evidence.backend);
      finding.cause = fmt::format("the tensor of {}{} was made on the CPU", call.op, place_of(call));
      finding.advice =
          "move the tensor to the rank's GPU before the call, or use a gloo group for CPU tensors";
      finding.on_backend =
          "raises \"Tensors must be CUDA and dense\" (or \"No backend type associated with device type "
          "cpu\") on these ranks; the others hang";
      return;
    case DeviceIncident::Kind::duplicate_gpu:
      finding.headline = fmt::format("{} {} {}, which rank {} of group {} uses already", ranks_phrase(ranks),
                                     is_plural(ranks) ? "use" : "uses",
                                     call.device.empty() ? to_string(incident.op.device) : call.device,
                                     incident.other, call.group);
      finding.cause = "two ranks of one group on the same host were given the same GPU";
      finding.advice =
          "call torch.cuda.set_device(local_rank) before the first collective, or give init_process_group a "
          "device_id";
      finding.on_backend =
          "NCCL refuses to make the communicator: \"Duplicate GPU detected\", or hangs when the "
          "processes cannot see each other's devices";
      return;
    case DeviceIncident::Kind::stray_device:
      finding.headline = fmt::format(
          "{} {} group {} from {} to {} in {}", ranks_phrase(ranks), is_plural(ranks) ? "move" : "moves",
          call.group, to_string(incident.expected), to_string(incident.op.device), call_phrase(call));
      finding.cause =
          fmt::format("a rank's tensors must stay on one device per group; {} found one elsewhere{}", call.op,
                      place_of(call));
      finding.advice =
          "bind every tensor and every Joinable's join_device to the rank's own GPU "
          "(torch.cuda.set_device(local_rank))";
      finding.on_backend =
          "a second communicator is opened for the new device, which the other ranks never join: a "
          "hang, or \"tensor is not on the device passed at init\"";
      return;
  }
}

void word_failure(const Evidence& evidence, Finding& finding) {
  const std::string exception = exception_of(evidence, finding.culprits.first());
  finding.headline = fmt::format("{} {}", with_verb(finding.culprits, "raised", "raised"), exception);
  if (finding.kind == "early_termination") {
    finding.cause =
        "throw_on_early_termination is set and these ranks ran out of inputs first, so Join stopped all "
        "ranks";
    finding.advice =
        "catch the RuntimeError around the Join context if an early end is wanted; otherwise drop "
        "throw_on_early_termination";
    return;
  }
  finding.cause = "the rank program raised, and nobody was left waiting for it";
  finding.advice = "fix the exception; the other ranks are not involved";
}

void word_limit(const LimitIncident& incident, Finding& finding) {
  if (incident.limit == "ops") {
    finding.headline = fmt::format("stopped after {} operations and loop iterations", incident.value);
    finding.cause = "the program does not end, or needs more steps than limits.ops allows";
    finding.advice =
        "look for a loop without an end; raise limits.ops if the program is meant to be this long";
    return;
  }
  finding.headline = fmt::format("stopped at {} ns of simulated time", incident.value);
  finding.cause = "the program needs more simulated time than limits.simulated_time allows";
  finding.advice =
      "look for a loop without an end; raise limits.simulated_time if the program is meant to be this long";
}

}  // namespace rollcall::check
