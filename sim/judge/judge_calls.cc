#include "sim/judge/judge_parts.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "sim/match/naming.h"
#include "sim/wording/wording.h"
#include "sim/wording/wording_messages.h"

namespace rollcall::check {
namespace {

// Blames all ranks outside the largest variant; on a tie for the largest, all ranks.
void vote(const std::vector<OpVariant>& variants, Finding& finding) {
  const std::size_t most = variants.front().ranks.size();
  finding.tie = variants.size() > 1 && variants[1].ranks.size() == most;
  for (std::size_t i = finding.tie ? 0 : 1; i < variants.size(); ++i) {
    finding.culprits.insert(RankSet::of(variants[i].ranks));
  }
}

// For parts of different sizes: blames the ranks at the most misfitting ends. Of a sender and a receiver with equally
// many, blames the receiver, because the data is what the sender sends.
void vote_on_parts(const std::vector<PartMisfit>& misfits, Finding& finding) {
  std::map<Rank, std::pair<std::size_t, std::size_t>> ends;  // by rank: all its misfits; those it receives
  for (const PartMisfit& misfit : misfits) {
    ++ends[misfit.sender].first;
    ++ends[misfit.receiver].first;
    ++ends[misfit.receiver].second;
  }
  const auto worst = std::ranges::max_element(ends, {}, [](const auto& entry) { return entry.second; });
  const auto most = worst->second;
  finding.culprits = {};
  for (const auto& [rank, count] : ends) {
    if (count == most) {
      finding.culprits.insert(rank);
    }
  }
  finding.tie = false;
}

bool has_both_sides(const Incident& incident) {
  const auto shadows = [](const OpVariant& variant) { return variant.op.shadow; };
  return std::ranges::any_of(incident.variants, shadows) && !std::ranges::all_of(incident.variants, shadows);
}

// In a mismatch between a joined rank's hook and an active rank, the hook is to blame, unless the
// active rank's call does not belong to a joinable at all: then nothing could have shadowed it. False for others.
bool blame_hook(const Evidence& evidence, const Incident& incident, Finding& finding) {
  if (!has_both_sides(incident)) {
    return false;
  }
  bool unshadowed = false;
  for (const OpVariant& variant : incident.variants) {
    unshadowed = unshadowed || (!variant.op.shadow && !evidence.scopes->pairing(variant.op.scope).strict);
  }
  finding.culprits = {};
  finding.tie = false;
  for (const OpVariant& variant : incident.variants) {
    if (variant.op.shadow != unshadowed) {
      finding.culprits.insert(RankSet::of(variant.ranks));
    }
  }
  finding.kind = FindingKind::join_hook_mismatch;
  word_hook_mismatch(evidence, incident, finding);
  return true;
}

FindingKind mismatch_kind(const std::vector<OpVariant>& variants) {
  const Op& a = variants.front().op;
  if (is_about_groups(a.kind)) {
    return FindingKind::group_args_mismatch;
  }
  const auto differs = [&](auto&& field) {
    return std::ranges::any_of(variants,
                               [&](const OpVariant& variant) { return field(variant.op) != field(a); });
  };
  if (!is_point_to_point(a.kind) && differs([](const Op& op) { return op.kind; })) {
    return FindingKind::op_mismatch;
  }
  const bool exchanges_parts = row_of(a.kind).sizes == Sizes::exchanged;
  if (differs([](const Op& op) { return op.numel; }) && !(exchanges_parts && a.uneven)) {
    return FindingKind::numel_mismatch;
  }
  if (differs([](const Op& op) { return op.dtype; })) {
    return FindingKind::dtype_mismatch;
  }
  if (differs([](const Op& op) { return op.reduce; })) {
    return FindingKind::reduce_op_mismatch;
  }
  if (a.uneven) {
    return FindingKind::split_mismatch;  // nothing else is left
  }
  return FindingKind::root_mismatch;
}

// The place of an incident, with the ranks of all variants.
Place place_of(const Evidence& evidence, const Incident& incident) {
  Place place;
  place.call = name_call(evidence, incident.variants.front().op, incident.seq);
  for (const OpVariant& variant : incident.variants) {
    place.waiting.insert(RankSet::of(variant.ranks));
  }
  return place;
}

Divergence divergence_of(const Evidence& evidence, const Incident& incident) {
  return {group_name(evidence, incident.group), incident.seq, name_variants(evidence, incident)};
}

}  // namespace

void attach_divergence(const Evidence& evidence, GroupId group, std::int64_t seq, Finding& finding) {
  const auto& incident = evidence.mispairing;
  if (!incident || (incident->group == group && incident->seq >= seq)) {
    return;
  }
  finding.first_divergence = divergence_of(evidence, *incident);
  if (blame_hook(evidence, *incident, finding)) {
    return;
  }
  Finding voted;
  vote(incident->variants, voted);
  if (!voted.tie) {
    finding.culprits = voted.culprits;
    word_extra_headline(finding);
  }
  Finding words;
  word_mispairing(evidence, *incident, words);
  finding.cause = fmt::format("{}; the later calls pair from there on", words.headline);
  finding.advice = words.advice;
}

Verdict judge_mismatch(const Evidence& evidence) {
  const Incident& incident = *evidence.mismatch;
  Mismatch mismatch;
  Finding& finding = mismatch.finding;
  mismatch.variants = name_variants(evidence, incident);
  finding.kind = mismatch_kind(incident.variants);
  finding.at = place_of(evidence, incident);
  vote(incident.variants, finding);
  if (!blame_hook(evidence, incident, finding)) {
    word_mismatch(evidence, incident, finding);
    if (!incident.misfits.empty()) {
      vote_on_parts(incident.misfits, finding);
      word_parts(evidence, incident, finding);
      for (const PartMisfit& misfit : incident.misfits) {
        mismatch.splits.push_back({misfit.sender, misfit.receiver, misfit.sent, misfit.expected});
      }
    }
    if (is_point_to_point(incident.variants.front().op.kind)) {
      word_message_mismatch(evidence, incident, finding);
    }
  }
  attach_divergence(evidence, incident.group, incident.seq, finding);
  return mismatch;
}

Verdict judge_mispairing(const Evidence& evidence) {
  const Incident& incident = *evidence.mispairing;
  WrongResult wrong;
  Finding& finding = wrong.finding;
  wrong.variants = name_variants(evidence, incident);
  finding.at = place_of(evidence, incident);
  if (!blame_hook(evidence, incident, finding)) {
    finding.kind = FindingKind::mispaired;
    vote(incident.variants, finding);
    word_mispairing(evidence, incident, finding);
  }
  return wrong;
}

}  // namespace rollcall::check
