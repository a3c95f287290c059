#include "sim/judge/judge_training.h"

#include <algorithm>
#include <map>

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
    finding.culprits.insert(rank.rank);
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

std::optional<Verdict> judge_replicas(const std::vector<RankTraining>& ranks) {
  std::map<std::string, RankSet> by_digest;
  for (const RankTraining& rank : ranks) {
    by_digest[rank.digest].insert(rank.rank);
  }
  if (by_digest.size() < 2) {
    return std::nullopt;
  }
  const auto most =
      std::ranges::max_element(by_digest, {}, [](const auto& side) { return side.second.size(); });
  const auto are_most = [&](const auto& side) { return side.second.size() == most->second.size(); };
  RankSet all;
  for (const RankTraining& rank : ranks) {
    all.insert(rank.rank);
  }
  WrongResult wrong;
  Finding& finding = wrong.finding;
  finding.kind = FindingKind::trained_apart;
  finding.tie = std::ranges::count_if(by_digest, are_most) > 1;
  finding.culprits = finding.tie ? all : difference(all, most->second);
  Call wrap;
  wrap.op = "DistributedDataParallel";
  wrap.site = ranks.front().site;
  finding.at = Place{wrap, {}, {}};
  finding.headline =
      finding.tie ? fmt::format("the replicas of one model differ at the end: {} have {} different ones",
                                ranks_phrase(all), by_digest.size())
                  : fmt::format("at the end, the {} of {} from the others'",
                                is_plural(finding.culprits) ? "replicas" : "replica",
                                with_verb(finding.culprits, "differs", "differ"));
  finding.cause =
      "DistributedDataParallel averages gradients, and not parameters: an optimizer took other steps on some "
      "ranks "
      "(another learning rate, other state), or the loss was computed by the module inside the wrapper";
  finding.advice =
      "call the wrapper; let all ranks decide alike about the optimizer (reduce the metric that a scheduler "
      "reads), and "
      "load its state on every rank";
  finding.on_backend = "training continues without an error, and rank 0 saves a model that no other rank has";
  return wrong;
}

}  // namespace rollcall::check
