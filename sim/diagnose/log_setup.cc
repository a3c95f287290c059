// Judges what no call is to blame for: ranks that share a GPU, models that differ, jobs that were ended from outside.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/diagnose/error_advice.h"
#include "sim/diagnose/log_calls.h"
#include "sim/diagnose/log_judge.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

using Kind = LogFact::Kind;

constexpr const char* advice_on_gpus =
    "call torch.cuda.set_device(LOCAL_RANK) before the first call, let every rank see its own GPU "
    "(CUDA_VISIBLE_DEVICES), and start no more ranks on a machine than it has GPUs";

// How many parameters the model of each rank has. What a rank says of itself counts more than what others say of it.
using Models = std::map<Rank, const LogFact*>;

Models models_in(const std::vector<LogFact>& facts) {
  Models models;
  for (const LogFact& fact : facts) {
    if (fact.kind == Kind::model) {
      const LogFact*& known = models[fact.ranks.first()];
      known = known == nullptr || (fact.text.empty() && !known->text.empty()) ? &fact : known;
    }
  }
  return models;
}

std::string model_phrase(const RankSet& ranks, std::int64_t count) {
  return fmt::format("{} with {} {}", ranks_phrase(ranks), count, count == 1 ? "parameter" : "parameters");
}

// Ranks of which the others have the number 0, and which do not say themselves that they have no parameters.
Diagnosis without_number(const Models& models, const RankSet& ranks) {
  const LogFact& shown = *models.at(ranks.first());
  Diagnosis diagnosis = diagnosis_of(FindingKind::size_mismatch, Confidence::low, ranks);
  diagnosis.alternatives = {FindingKind::crashed_rank, FindingKind::duplicate_gpu};
  diagnosis.finding.headline =
      fmt::format("{} has heard of no parameters on {}", shown.text, ranks_phrase(ranks));
  diagnosis.finding.cause =
      "no parameter needs gradients there, or the number did not arrive: the process has failed, or shares a "
      "GPU";
  diagnosis.finding.advice =
      fmt::format("read the log of {} for an error before this one; {}", ranks_phrase(ranks), advice_on_gpus);
  diagnosis.evidence.push_back(
      fmt::format("{}: {} names {}", shown.place(), shown.text, ranks_phrase(ranks)));
  diagnosis.would_settle.push_back(fmt::format("the log of {}", ranks_phrase(ranks)));
  return diagnosis;
}

Diagnosis differing(const Models& models, const std::map<std::int64_t, RankSet>& counts, const RankSet& all) {
  const Sides sides = sides_of(counts);
  const LogFact& theirs = *models.at(sides.other);
  const LogFact& usual = *models.at(sides.usual);
  RankSet known;
  for (const auto& [count, ranks] : counts) {
    known.insert(ranks);
  }
  const Confidence confidence = sides.tie             ? Confidence::low
                                : known.contains(all) ? Confidence::high
                                                      : Confidence::medium;
  Diagnosis diagnosis = diagnosis_of(FindingKind::size_mismatch, confidence, sides.odd);
  diagnosis.finding.tie = sides.tie;
  diagnosis.finding.headline =
      fmt::format("the models differ: {}, {}", model_phrase(counts.at(theirs.count), theirs.count),
                  model_phrase(counts.at(usual.count), usual.count));
  diagnosis.finding.cause =
      "DistributedDataParallel compares how many parameters need gradients on each rank";
  diagnosis.finding.advice =
      "build the same model on every rank: look for layers, classes, a vocabulary or frozen parameters that "
      "depend on the rank or on its data";
  diagnosis.evidence = {fmt::format("{}: {}", theirs.place(), model_phrase(theirs.ranks, theirs.count)),
                        fmt::format("{}: {}", usual.place(), model_phrase(usual.ranks, usual.count))};
  return diagnosis;
}

}  // namespace

RankSet ranks_that_compared(const std::vector<LogFact>& facts) {
  return ranks_where(facts,
                     [](const LogFact& fact) { return fact.kind == Kind::model && fact.text.empty(); });
}

std::optional<Diagnosis> judge_shared_gpus(const std::vector<LogFact>& facts) {
  const LogFact* first = first_of(facts, Kind::shared_gpu);
  if (first == nullptr) {
    return std::nullopt;
  }
  // NCCL names pairs. Those of another machine may have a GPU on a bus with this number, too.
  RankSet ranks = first->ranks;
  for (std::size_t known = 0; known < ranks.size();) {
    known = ranks.size();
    ranks.insert(ranks_where(facts, [&](const LogFact& fact) {
      return fact.kind == Kind::shared_gpu && fact.text == first->text && ranks.meets(fact.ranks);
    }));
  }
  Diagnosis diagnosis =
      diagnosis_of(FindingKind::duplicate_gpu, ranks.empty() ? Confidence::low : Confidence::high, ranks);
  diagnosis.finding.headline = fmt::format(
      "{} use one GPU, on bus {}", ranks.empty() ? "ranks of one group" : ranks_phrase(ranks), first->text);
  diagnosis.finding.cause = "NCCL refuses to make a communicator of processes that share a GPU";
  diagnosis.finding.advice = advice_on_gpus;
  diagnosis.evidence.push_back(fmt::format("{}: NCCL says \"Duplicate GPU detected\"", first->place()));
  return diagnosis;
}

std::optional<Diagnosis> judge_stopped_job(const std::vector<LogFact>& facts) {
  const LogFact* stop = first_of(facts, Kind::stopped_job);
  if (stop == nullptr || log_shows_failure(facts)) {
    return std::nullopt;
  }
  Diagnosis diagnosis = undecided();
  diagnosis.finding.headline =
      "the job was ended from outside, and nothing that was read says that a rank failed";
  diagnosis.finding.cause = stop->text;
  diagnosis.finding.advice = advice_on_stopped_job(stop->text);
  diagnosis.evidence.push_back(fmt::format("{}: {}", stop->place(), stop->text));
  return diagnosis;
}

std::optional<Diagnosis> judge_lost_store(const std::vector<LogFact>& facts) {
  const RankSet ranks = ranks_with(facts, Kind::lost_store);
  if (ranks.empty() || log_shows_failure(facts)) {
    return std::nullopt;
  }
  const bool is_rank_0s = !ranks.contains(0);
  Diagnosis diagnosis = undecided();
  diagnosis.finding.headline =
      fmt::format("the process that serves the store ended before {}, and nothing that was read says why",
                  ranks_phrase(ranks));
  diagnosis.finding.cause = is_rank_0s ? "rank 0 serves the store, or torchrun on the first machine"
                                       : "torchrun on the first machine serves the store";
  diagnosis.finding.advice =
      fmt::format("read what {} printed last: an error, a signal, or an end without waiting for the others",
                  is_rank_0s ? "these two" : "it and the ranks there");
  diagnosis.evidence.push_back(fmt::format("{}: the store of {} does not answer any more",
                                           first_of(facts, Kind::lost_store)->place(), ranks_phrase(ranks)));
  diagnosis.would_settle.push_back("the logs of all ranks, and of torchrun on the first machine");
  return diagnosis;
}

std::optional<Diagnosis> judge_models(const std::vector<LogFact>& facts) {
  const Models models = models_in(facts);
  std::map<std::int64_t, RankSet> counts;
  RankSet unheard;
  for (const auto& [rank, fact] : models) {
    const bool is_heard = fact->count > 0 || fact->text.empty();
    is_heard ? counts[fact->count].insert(fact->ranks) : unheard.insert(fact->ranks);
  }
  const RankSet compared = ranks_that_compared(facts);
  const bool has_own_error = std::ranges::any_of(facts, [&](const LogFact& fact) {
    return fact.kind == Kind::raised && !compared.contains(fact.ranks);
  });
  if (has_own_error || (counts.size() < 2 && unheard.empty())) {
    return std::nullopt;
  }
  return counts.size() < 2 ? without_number(models, unheard)
                           : differing(models, counts, ranks_with(facts, Kind::wrote));
}

}  // namespace rollcall::check
