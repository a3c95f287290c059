// Judges ranks that wait for others while they make a group, in a barrier of the store.

#include <map>

#include <fmt/core.h>

#include "sim/diagnose/log_ranks.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

using Kind = LogFact::Kind;

// One barrier, as far as the logs show it.
struct Barrier {
  RankSet waiting;
  const LogFact* latest = nullptr;  // the line that counts most arrivals
};

// More ranks than there should be.
Diagnosis too_many(const Barrier& barrier) {
  Diagnosis diagnosis = diagnosis_of(FindingKind::group_args_mismatch, Confidence::low, {});
  diagnosis.finding.headline = fmt::format("{} processes came to {}, which is for {}", barrier.latest->count,
                                           barrier.latest->op, barrier.latest->expected);
  diagnosis.finding.cause =
      "the store also counts processes of another job or of an earlier start, or the ranks disagree on the "
      "world size";
  diagnosis.finding.advice =
      "give each start an address and a port of its own (MASTER_PORT, torchrun --rdzv-endpoint), and start "
      "as many processes as the world size says";
  return diagnosis;
}

Diagnosis too_few(const Barrier& barrier) {
  const LogFact& shown = *barrier.latest;
  const std::int64_t lacking = shown.expected - shown.count;
  const bool are_known = static_cast<std::int64_t>(barrier.waiting.size()) == shown.count;
  const RankSet missing =
      are_known ? difference(RankSet::range(0, static_cast<Rank>(shown.expected) - 1), barrier.waiting)
                : RankSet();
  const bool makes_a_group = shown.op == "new_group";
  Diagnosis diagnosis = diagnosis_of(makes_a_group ? FindingKind::partial_subgroup : FindingKind::stuck_host,
                                     are_known ? Confidence::medium : Confidence::low, missing);
  diagnosis.alternatives = {makes_a_group ? FindingKind::stuck_host : FindingKind::crashed_rank,
                            FindingKind::early_exit};
  const std::string who =
      are_known ? ranks_phrase(missing) : fmt::format("{} of {} ranks", lacking, shown.expected);
  diagnosis.finding.headline = fmt::format("{} did not come to {}", who, shown.op);
  diagnosis.finding.cause = fmt::format("{} there for {}", with_verb(barrier.waiting, "waits", "wait"),
                                        lacking == 1 ? "one more" : fmt::format("{} more", lacking));
  diagnosis.finding.advice = makes_a_group
                                 ? advice_on_new_group
                                 : fmt::format("check whether {} {} started, and can reach the store", who,
                                               lacking == 1 ? "was" : "were");
  if (!are_known) {
    diagnosis.would_settle.push_back("the logs of all ranks");
  }
  return diagnosis;
}

}  // namespace

std::optional<Diagnosis> judge_store_barriers(const std::vector<LogFact>& facts) {
  std::map<std::int64_t, Barrier> barriers;
  for (const LogFact& fact : facts) {
    if (fact.kind == Kind::in_store_barrier) {
      Barrier& barrier = barriers[fact.seq];
      barrier.waiting.insert(fact.ranks);
      const bool is_later = barrier.latest == nullptr || fact.count > barrier.latest->count;
      barrier.latest = is_later ? &fact : barrier.latest;
    }
  }
  for (const auto& [key, barrier] : barriers) {
    const LogFact& shown = *barrier.latest;
    if (shown.count == shown.expected || shown.expected == 0) {
      continue;
    }
    Diagnosis diagnosis = shown.count > shown.expected ? too_many(barrier) : too_few(barrier);
    set_op(shown.op, barrier.waiting, diagnosis.finding.culprits, diagnosis);
    diagnosis.evidence.push_back(
        fmt::format("{}: {} of {} have arrived", shown.place(), shown.count, shown.expected));
    return diagnosis;
  }
  return std::nullopt;
}

}  // namespace rollcall::check
