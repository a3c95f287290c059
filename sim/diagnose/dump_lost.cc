// Ranks that left no dump, and that the others wait for: they are dead, or were not observed.

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

Diagnosis lost_ranks(const DumpCase& job, const WaitNode& node, const RankSet& lost) {
  const bool many = is_plural(lost);
  const std::string ranks = ranks_phrase(lost);
  Diagnosis diagnosis = diagnosis_of(FindingKind::crashed_rank, Confidence::medium, lost);
  set_place(job, node, lost, diagnosis);
  diagnosis.finding.headline =
      fmt::format("{} left no dump, and all other ranks wait for {}", ranks, many ? "them" : "it");
  diagnosis.finding.cause =
      many ? fmt::format("{} ended or were killed before they could write their dumps", ranks)
           : fmt::format("{} ended or was killed before it could write its dump", ranks);
  diagnosis.finding.advice =
      fmt::format("read the log of {} for an exception, a signal or an out-of-memory kill", ranks);
  diagnosis.evidence.push_back(fmt::format("every wait leads to {}; no other rank owes a call", ranks));
  diagnosis.would_settle.push_back(fmt::format("the log of {}, or the dump if it was only lost", ranks));
  return diagnosis;
}

// The job is alive, and so may these ranks be.
void say_unobserved(const RankSet& lost, Diagnosis& diagnosis) {
  const bool many = is_plural(lost);
  diagnosis.alternatives = {FindingKind::stuck_host};
  diagnosis.finding.headline = fmt::format("{} not observed, and all other ranks wait for {}",
                                           with_verb(lost, "is", "are"), many ? "them" : "it");
  diagnosis.finding.cause = fmt::format("{} ended without a trace, or {} without rollcall's observer",
                                        ranks_phrase(lost), many ? "run" : "runs");
  diagnosis.finding.advice = fmt::format(
      "look at the process of {}; Python started with -E, -I or -S is not observed, and neither are nodes "
      "without `rollcall watch`",
      ranks_phrase(lost));
  diagnosis.would_settle = {fmt::format("the log or the host stack of {}", ranks_phrase(lost))};
}

// A call with a root that is over for some ranks, while others wait in it, may just as well have ranks that name
// different roots.
void doubt_roots(const DumpCase& job, Diagnosis& diagnosis) {
  for (const WaitNode& node : job.waits.nodes) {
    const Call call = name_node(job, node);
    if (node.kind != DumpOp::Kind::collective || !has_root(call.op)) {
      continue;
    }
    const RankSet past = ranks_past(job, node);
    if (!past.empty()) {
      diagnosis.confidence = Confidence::low;
      diagnosis.alternatives.push_back(FindingKind::root_mismatch);
      diagnosis.evidence.push_back(
          fmt::format("{} is over for {}, and {} in it: ranks that name different roots leave the same",
                      call_phrase(call), ranks_phrase(past), with_verb(ranks_of(node), "waits", "wait")));
      return;
    }
  }
}

}  // namespace

std::optional<Diagnosis> judge_lost(const DumpCase& job) {
  if (job.roots.lost.empty()) {
    return std::nullopt;
  }
  RankSet lost = job.roots.lost;
  if (const RankSet gone = difference(lost, alive_ranks(job.view.job.facts)); !gone.empty()) {
    lost = gone;  // the others lost their dumps only
  }
  const WaitNode& node = telling_node(job, lost);
  Diagnosis diagnosis = lost_ranks(job, node, lost);
  const RankSet ended = ranks_with(job.view.job.facts, {LogFact::Kind::ended, LogFact::Kind::exited});
  if (job.view.job.is_known_to_hang && !ended.meets(lost)) {
    say_unobserved(lost, diagnosis);
  }
  if (node.ranks.size() < lost.size()) {  // then the few may have made a call that the job does not have
    diagnosis.confidence = Confidence::low;
    diagnosis.alternatives = {FindingKind::extra_collective};
  }
  doubt_roots(job, diagnosis);
  if (ended_otherwise(job)) {
    diagnosis.confidence = Confidence::low;
    diagnosis.evidence.push_back(
        "some ranks have the call that others wait in behind them, or it failed there");
    diagnosis.would_settle.push_back(
        "the logs of all ranks: Gloo's recorder retires a call that failed, too");
  }
  return diagnosis;
}

}  // namespace rollcall::check
