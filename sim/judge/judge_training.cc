#include "sim/judge/judge_training.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/wording/phrasing.h"

namespace rollcall::check {

std::optional<Verdict> judge_training(const std::vector<RankTraining>& ranks, bool on_cpu) {
  const auto other = std::ranges::find_if(
      ranks, [&](const RankTraining& rank) { return rank.digest != ranks.front().digest; });
  if (other == ranks.end()) {
    return std::nullopt;
  }
  WrongResult wrong;
  Finding& finding = wrong.finding;
  finding.kind = FindingKind::trained_apart;
  for (const RankTraining& rank : ranks) {
    finding.culprits.insert(RankSet{rank.rank});
  }
  finding.tie = true;
  Call step;
  step.op = "step";
  step.site = other->site;
  finding.at = Place{step, {}, {}};
  finding.headline = fmt::format("rank {} updated {} parameter{} that rank {} never saw", other->rank,
                                 other->parameters, other->parameters == 1 ? "" : "s", ranks.front().rank);
  finding.cause = fmt::format(
      "{} stepped optimizers of their own ({} step{} on rank {}{}), and no call carried gradients or "
      "parameters between them",
      ranks_phrase(finding.culprits), other->steps, other->steps == 1 ? "" : "s", other->rank,
      origin_of(step));
  finding.advice =
      "wrap the model in DistributedDataParallel and call the wrapper, or reduce the gradients before the "
      "step";
  if (on_cpu) {
    finding.advice += "; check whether the script skips the wrapping because it found no GPU";
  }
  finding.on_backend = "training continues without an error, and every rank has a model of its own";
  return wrong;
}

}  // namespace rollcall::check
