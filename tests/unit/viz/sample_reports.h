#pragma once

// Handmade reports, like those of runs.

#include <string>
#include <utility>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::samples {

inline Call all_reduce(std::int64_t seq, std::string site = "uneven_inputs.json:14:11",
                       std::int64_t numel = 1) {
  return {.op = "all_reduce",
          .group = "world",
          .seq = seq,
          .numel = numel,
          .dtype = "float32",
          .reduce_op = "SUM",
          .root = -1,
          .device = "cuda:0",
          .label = "",
          .site = std::move(site)};
}

inline RankClass finished(RankSet ranks, std::int64_t inputs) {
  RankClass result;
  result.ranks = std::move(ranks);
  result.inputs = inputs;
  return result;
}

inline RankClass waiting(RankSet ranks, Call call, RankSet waits_for) {
  RankClass result;
  result.ranks = std::move(ranks);
  result.state = RankClass::State::waiting;
  result.call = call;
  if (call.seq > 0) {
    result.last_completed = call;
    --result.last_completed->seq;
  }
  result.waits_for = std::move(waits_for);
  return result;
}

inline RankClass raised(RankSet ranks, std::string exception) {
  RankClass result;
  result.ranks = std::move(ranks);
  result.state = RankClass::State::raised;
  result.exception = std::move(exception);
  return result;
}

inline Report report(Verdict verdict, Rank world_size, std::vector<RankClass> ranks) {
  Report result;
  result.scenario = "uneven inputs without Join";
  result.replay = "rollcall run scenarios/uneven_inputs.json --seed 0";
  result.world_size = world_size;
  result.backend = "nccl";
  result.verdict = std::move(verdict);
  result.ranks = std::move(ranks);
  result.simulated_time = 41'250;
  result.ops = 23;
  return result;
}

// Every rank finished.
inline Report completed(Rank world_size) {
  return report(Completed{}, world_size, {finished(RankSet::range(0, world_size - 1), 6)});
}

// Inputs are 5, 6, 6, ...: rank 0 is done before the others' last call.
inline Report missing_rank(Rank world_size) {
  const RankSet others = RankSet::range(1, world_size - 1);
  Finding finding;
  finding.kind = FindingKind::missing_participant;
  finding.culprits = {0};
  finding.at = Place{all_reduce(5), others, {0}};
  finding.headline = "rank 0 never called all_reduce #5 on world (" + std::to_string(others.size()) + " of " +
                     std::to_string(world_size) + " ranks wait)";
  finding.cause = "rank 0 had 5 inputs and finished, the others have 6";
  finding.advice = "wrap the loop in Join, or give every rank the same number of inputs";
  finding.on_backend = "the others hang until the watchdog stops them after 10 minutes";
  return report(Deadlock{finding}, world_size, {finished({0}, 5), waiting(others, all_reduce(5), {0})});
}

// Rank 3's tensor has 5 elements, the others' have 4.
inline Report size_mismatch() {
  const Call majority = all_reduce(2, "sizes.json:9:9", 4);
  const Call odd = all_reduce(2, "sizes.json:12:9", 5);
  Finding finding;
  finding.kind = FindingKind::numel_mismatch;
  finding.culprits = {3};
  finding.at = Place{majority, {0, 1, 2, 3}, {}};
  finding.headline = "rank 3 called all_reduce #2 on world with 5 elements, the others with 4";
  finding.cause = "all_reduce needs equally many elements on every rank";
  finding.advice = "pad to a common size";
  Report result = report(Mismatch{finding, {{{0, 1, 2}, majority}, {{3}, odd}}}, 4,
                         {waiting({0, 1, 2}, majority, {}), waiting({3}, odd, {})});
  return result;
}

}  // namespace rollcall::samples
