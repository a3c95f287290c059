// Calls that met and do not fit: the findings of wording.h that compare calls.

#include <algorithm>

#include <fmt/core.h>

#include "sim/match/naming.h"
#include "sim/wording/on_backend.h"
#include "sim/wording/phrasing.h"
#include "sim/wording/wording.h"

namespace rollcall::check {
namespace {

constexpr std::size_t sides_max = 3;  // more are counted

constexpr const char* one_order_advice =
    "let every rank issue the same collectives in the same order; look for one that only some ranks reach, "
    "just before this one";

std::string slot_phrase(const Evidence& evidence, const Incident& incident) {
  return fmt::format("collective #{} on {}", incident.seq, group_name(evidence, incident.group));
}

// ---- How calls differ ----

// One kind of mismatch between the calls of a slot. Where calls differ in several ways, the first row names it.
struct MismatchRow {
  FindingKind kind;
  bool (*differs)(const Call&, const Call&);
  std::string (*property)(const Call&);  // the property in question, of one call
  const char* depends;                   // "the all_reduce gets ... depends on the rank or on its data"
  const char* advice;
  const char* joint = "with";  // "calls all_reduce with 17 elements"
};

constexpr MismatchRow mismatch_rows[] = {
    {FindingKind::op_mismatch, [](const Call& a, const Call& b) { return a.op != b.op; },
     [](const Call& call) { return call.op; }, "", one_order_advice},
    {FindingKind::group_args_mismatch, [](const Call& a, const Call& b) { return a.ranks != b.ranks; },
     [](const Call& call) { return "ranks " + call.ranks; }, "a list of ranks that",
     "make every group on all ranks, members or not: loop over all the lists of ranks, in one order", "for"},
    {FindingKind::numel_mismatch, [](const Call& a, const Call& b) { return a.numel != b.numel; },
     [](const Call& call) { return elements(call.numel); }, "a tensor whose size",
     "make the tensors equally large on every rank: pad them, or exchange the sizes first"},
    {FindingKind::dtype_mismatch, [](const Call& a, const Call& b) { return a.dtype != b.dtype; },
     [](const Call& call) { return call.dtype; }, "a tensor whose dtype",
     "convert to one dtype before the call; look for values whose type depends on the data or the device"},
    {FindingKind::reduce_op_mismatch, [](const Call& a, const Call& b) { return a.reduce_op != b.reduce_op; },
     [](const Call& call) { return call.reduce_op; }, "a reduce op that",
     "pass the same ReduceOp on every rank"},
    {FindingKind::root_mismatch, [](const Call& a, const Call& b) { return a.root != b.root; },
     [](const Call& call) { return fmt::format("root {}", call.root); }, "a root that",
     "pass the same root on every rank: it is a global rank, not a local one"},
    // The calls agree; word_parts names the parts that do not.
    {FindingKind::split_mismatch, [](const Call&, const Call&) { return false; },
     [](const Call& call) { return elements(call.numel); }, "parts whose sizes",
     "tell the others the counts that are really sent, with an all_to_all_single just before"},
};

// The mismatch that two calls make; null when they fit.
const MismatchRow* difference_of(const Call& a, const Call& b) {
  const auto* const row =
      std::ranges::find_if(mismatch_rows, [&](const MismatchRow& each) { return each.differs(a, b); });
  return row == std::end(mismatch_rows) ? nullptr : row;
}

struct Side {
  std::string property;
  RankSet ranks;
};

// The sides of a mismatch, the smallest first: that is the odd one.
std::vector<Side> sides_by_property(const MismatchRow& row, const std::vector<Variant>& variants) {
  std::vector<Side> sides;
  for (const Variant& variant : variants) {
    const std::string property = row.property(variant.call);
    const auto known = std::ranges::find(sides, property, &Side::property);
    Side& side = known == sides.end() ? sides.emplace_back(Side{property, {}}) : *known;
    side.ranks.insert(variant.ranks);
  }
  std::ranges::stable_sort(sides, [](const Side& a, const Side& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() < b.ranks.size()
                                            : a.ranks.first() < b.ranks.first();
  });
  return sides;
}

// "rank 3 calls all_reduce #0 on world with 17 elements; ranks 0-2 with 32 elements".
std::string who_calls_what(const Evidence& evidence, const Incident& incident, const MismatchRow& row) {
  const std::vector<Variant> variants = name_variants(evidence, incident);
  const std::vector<Side> sides = sides_by_property(row, variants);
  const bool other_ops = row.kind == FindingKind::op_mismatch;
  std::string text;
  for (std::size_t i = 0; i < std::min(sides.size(), sides_max); ++i) {
    const Side& side = sides[i];
    if (other_ops) {
      text += fmt::format("{}{} {}{}", i == 0 ? "" : "; ", with_verb(side.ranks, "calls", "call"),
                          side.property, i == 0 ? " as " + slot_phrase(evidence, incident) : "");
    } else if (i == 0) {
      text += fmt::format("{} {} {} {}", with_verb(side.ranks, "calls", "call"),
                          call_phrase(variants.front().call), row.joint, side.property);
    } else {
      text += fmt::format("; {} {} {}", ranks_phrase(side.ranks), row.joint, side.property);
    }
  }
  return sides.size() > sides_max ? text + fmt::format("; and {} more", sides.size() - sides_max) : text;
}

// ---- Where calls come from ----

// True if all ranks' calls come from one place of the program, and it is known.
bool same_site(const std::vector<Variant>& variants) {
  return !variants.front().call.site.empty() && std::ranges::all_of(variants, [&](const Variant& variant) {
    return variant.call.site == variants.front().call.site;
  });
}

bool same_label(const std::vector<Variant>& variants) {
  return std::ranges::all_of(
      variants, [&](const Variant& variant) { return variant.call.label == variants.front().call.label; });
}

// "rank 0 is in save_checkpoint at a.json:11:5, ranks 1-3 are in gradients at a.json:12:5".
std::string who_is_where(const Variant& variant) {
  const std::string origin = origin_of(variant.call);
  return with_verb(variant.ranks, "is", "are") + (origin.empty() ? " in unlabeled code" : origin);
}

// "rank 0 at a.json:11:5".
std::string who_is_at(const Variant& variant) {
  return fmt::format("{} at {}", ranks_phrase(variant.ranks),
                     variant.call.site.empty() ? "an unknown place" : variant.call.site);
}

// "rank 1 calls all_gather in metrics (a.py:11)".
std::string who_calls(const Variant& variant) {
  return fmt::format("{} {}{}", with_verb(variant.ranks, "calls", "call"), variant.call.op,
                     origin_of(variant.call));
}

// The text of `tell` for each variant, the odd one first.
template <typename Tell>
std::string list_of(std::vector<Variant> variants, Tell&& tell) {
  std::reverse(variants.begin(), variants.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(variants.size(), sides_max); ++i) {
    text += (i == 0 ? "" : ", ") + tell(variants[i]);
  }
  return variants.size() > sides_max ? text + fmt::format(", and so on, {} places in all", variants.size())
                                     : text;
}

std::string mismatch_cause(const std::vector<Variant>& variants, const MismatchRow& row) {
  const Call& call = variants.front().call;
  if (same_site(variants) && row.kind == FindingKind::op_mismatch) {
    return fmt::format("which call comes from {} depends on the rank or on its data: {}", call.site,
                       list_of(variants, who_calls));
  }
  if (same_site(variants)) {
    return fmt::format("the {}{} gets {} depends on the rank or on its data", call.op, origin_of(call),
                       row.depends);
  }
  if (same_label(variants)) {
    return fmt::format("the ranks reach {} on different branches: {}",
                       call.label.empty() ? "this call" : fmt::format("'{}'", call.label),
                       list_of(variants, who_is_at));
  }
  return fmt::format("the ranks are in different places: {}", list_of(variants, who_is_where));
}

bool comes_from_post_hook(const Evidence& evidence, const Incident& incident) {
  return std::ranges::any_of(incident.variants, [&](const OpVariant& variant) {
    return evidence.scopes->pairing_name(evidence.scopes->pairing(variant.op.scope)).ends_with(".post_hook");
  });
}

// "ranks 0-1,3 are in loss": the same with names only, for a headline.
std::string who_is_in(const Evidence& evidence, const Incident& incident) {
  std::vector<Variant> variants = name_variants(evidence, incident);
  std::reverse(variants.begin(), variants.end());
  std::string text;
  const std::size_t shown = std::min(variants.size(), sides_max);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == variants.size();
    text += fmt::format("{}{} in {}",
                        i == 0 ? ""
                        : last ? " and "
                               : ", ",
                        with_verb(variants[i].ranks, "is", "are"), place_name(variants[i].call));
  }
  return variants.size() > shown
             ? text + fmt::format(" and others in {} more places", variants.size() - shown)
             : text;
}

}  // namespace

void word_mismatch(const Evidence& evidence, const Incident& incident, Finding& finding) {
  const std::vector<Variant> variants = name_variants(evidence, incident);
  const bool strayed = !same_label(variants);  // no call is wrong on its own: the ranks are out of step
  const MismatchRow& row = row_of(mismatch_rows, finding.kind);
  finding.headline = who_calls_what(evidence, incident, row);
  finding.cause = mismatch_cause(variants, row);
  finding.advice = strayed ? one_order_advice : row.advice;
  if (comes_from_post_hook(evidence, incident)) {
    finding.advice =
        "post_hook runs on every rank: issue its collectives on all of them, and use is_last_joiner only to "
        "decide what they carry";
  }
  finding.on_backend = mismatch_on_backend(evidence, finding.kind, incident.variants);
}

void word_parts(const Evidence& evidence, const Incident& incident, Finding& finding) {
  const auto about = std::ranges::find_if(incident.misfits, [&](const PartMisfit& misfit) {
    return finding.culprits.contains(misfit.receiver) || finding.culprits.contains(misfit.sender);
  });
  const PartMisfit& misfit = about == incident.misfits.end() ? incident.misfits.front() : *about;
  finding.headline =
      fmt::format("in {}, rank {} expects {} from rank {}, but rank {} sends {}",
                  call_phrase(name_call(evidence, incident.variants.front().op, incident.seq)),
                  misfit.receiver, elements(misfit.expected), misfit.sender, misfit.sender, misfit.sent);
  finding.cause = fmt::format(
      "{} split sizes", incident.misfits.size() == 1
                            ? std::string("one pair of ranks disagrees about its")
                            : fmt::format("{} pairs of ranks disagree about their", incident.misfits.size()));
  finding.advice = row_of(mismatch_rows, FindingKind::split_mismatch).advice;
}

void word_mispairing(const Evidence& evidence, const Incident& incident, Finding& finding) {
  finding.headline = fmt::format("{}, but their calls pair as {}", who_is_in(evidence, incident),
                                 slot_phrase(evidence, incident));
  finding.cause =
      "operation, size and dtype agree, so no backend notices that these ranks are out of step: their "
      "collectives are swapped, or one is missing or extra";
  finding.advice = one_order_advice;
  finding.on_backend = "completes without an error; the values mix unrelated tensors";
}

// ---- Join: a hook against an iteration ----

namespace {

struct HookMeeting {
  RankSet joined;
  RankSet active;
  Call shadow_call;  // of the first variant of each side
  Call active_call;
  std::string shadow_pairing;
  std::string active_pairing;
  bool in_joinable = false;  // the active call belongs to a joinable
};

HookMeeting meeting_of(const Evidence& evidence, const Incident& incident) {
  HookMeeting meeting;
  for (const OpVariant& variant : incident.variants) {
    RankSet& side = variant.op.shadow ? meeting.joined : meeting.active;
    if (side.empty()) {
      const Pairing pairing = evidence.scopes->pairing(variant.op.scope);
      (variant.op.shadow ? meeting.shadow_call : meeting.active_call) =
          name_call(evidence, variant.op, incident.seq);
      (variant.op.shadow ? meeting.shadow_pairing : meeting.active_pairing) =
          evidence.scopes->pairing_name(pairing);
      meeting.in_joinable = variant.op.shadow ? meeting.in_joinable : pairing.strict;
    }
    side.insert(RankSet::of(variant.ranks));
  }
  return meeting;
}

// Join's own count came too early: the joined rank is short of calls.
void word_short_hook(const Evidence& evidence, const HookMeeting& meeting, Finding& finding) {
  const std::string met =
      fmt::format("Join's own count met {}{}", meeting.active_call.op, origin_of(meeting.active_call));
  if (!evidence.scopes->has_entered("join.notify")) {
    finding.cause = fmt::format("no rank ever called Join.notify_join_context: {}", met);
    finding.advice =
        "call Join.notify_join_context first in every iteration, before the joinable's collectives";
    return;
  }
  finding.cause = fmt::format(
      "main_hook issues fewer collectives than one iteration of {} (or an iteration skipped "
      "notify_join_context): {}",
      ranks_phrase(meeting.active), met);
  finding.advice =
      "let main_hook repeat each of the joinable's collectives, in order; call notify_join_context once per "
      "iteration, before them";
}

void word_long_hook(const HookMeeting& meeting, Finding& finding) {
  finding.cause = fmt::format(
      "main_hook issues more collectives than one iteration of {}: the surplus {}{} met the next iteration's "
      "notify_join_context",
      ranks_phrase(meeting.active), meeting.shadow_call.op, origin_of(meeting.shadow_call));
  finding.advice =
      "remove the surplus collective from main_hook; it must repeat the iteration's calls one for one";
}

// Names the rule where one is known to be broken: only active ranks notify.
void word_notifying_hook(const Evidence& evidence, const HookMeeting& meeting, Finding& finding) {
  for (const RankObservation& observation : evidence.observations) {
    if (observation.what.kind == Observation::Kind::hook_notifies) {
      const std::string& name = observation.what.handle;
      finding.cause = fmt::format(
          "Join's list begins with {}, and the first joinable notifies for all; but the main_hook of {} "
          "notifies too (ZeRO's is step()), as if joined {} {} active",
          name, name, ranks_phrase(meeting.joined), is_plural(meeting.joined) ? "were still" : "were");
      finding.advice = fmt::format(
          "list first what notifies before its collectives and shadows without notifying: the "
          "DistributedDataParallel model, then {}",
          name);
      return;
    }
  }
}

void word_other_hook(const HookMeeting& meeting, Finding& finding) {
  const Call& shadow = meeting.shadow_call;
  const Call& active = meeting.active_call;
  const MismatchRow* row = difference_of(shadow, active);
  if (row == nullptr) {
    finding.cause = fmt::format(
        "the hook's call in {} met the iteration's in {}: the joinables take turns in a different order than "
        "in Join's list",
        place_name(shadow), place_name(active));
    finding.advice = "call the joinables in every iteration in the order in which Join lists them";
    return;
  }
  finding.cause = row->kind == FindingKind::op_mismatch
                      ? fmt::format("main_hook calls {} where the iteration calls {}", shadow.op, active.op)
                      : fmt::format("main_hook calls {} with {}, the iteration with {}", shadow.op,
                                    row->property(shadow), row->property(active));
  finding.advice =
      "let main_hook issue the same operation, size, dtype and root as forward does, in the same order";
}

}  // namespace

void word_hook_mismatch(const Evidence& evidence, const Incident& incident, Finding& finding) {
  const HookMeeting meeting = meeting_of(evidence, incident);
  constexpr const char* presence = "join.presence";
  finding.headline =
      fmt::format("joined {} and active {} get out of step in {}", ranks_phrase(meeting.joined),
                  ranks_phrase(meeting.active), slot_phrase(evidence, incident));
  finding.on_backend = hook_mismatch_on_backend();
  if (!meeting.in_joinable) {
    finding.cause = fmt::format("{} {}{} inside the Join loop, and no main_hook shadows it there",
                                with_verb(meeting.active, "calls", "call"), meeting.active_call.op,
                                origin_of(meeting.active_call));
    finding.advice =
        "repeat the collective in the main_hook of its Joinable; where it has none, move it out of the loop; "
        "with several Joinables, let the loop make their calls in the order of Join's list";
  } else if (meeting.shadow_pairing == presence && meeting.active_pairing != presence) {
    word_short_hook(evidence, meeting, finding);
  } else if (meeting.active_pairing == presence) {
    word_long_hook(meeting, finding);
  } else {
    word_other_hook(meeting, finding);
  }
  if (meeting.in_joinable) {
    word_notifying_hook(evidence, meeting, finding);
  }
}

}  // namespace rollcall::check
