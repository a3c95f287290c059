// Messages whose two ends disagree.

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_habits.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

std::optional<Diagnosis> judge_message(const DumpCase& job, const WaitNode& node) {
  const RankOps& ops = *job.view.ops_of(node.ranks.front());
  for (const std::uint32_t record : ops.parts_of(*node.ops.front())) {
    const DumpCall& mine = job.view.job.calls[ops.dump->records[record].call];
    if (!mine.is_message()) {
      continue;
    }
    const Counterpart other = job.messages.counterpart(ops, record);
    if (other.op == nullptr) {
      continue;
    }
    const DumpCall& theirs = job.view.job.calls[other.ops->dump->records[other.record].call];
    const bool agree = mine.inputs == theirs.inputs && mine.input_dtypes == theirs.input_dtypes;
    if (agree) {
      continue;
    }
    Diagnosis diagnosis;
    diagnosis.finding.kind = FindingKind::p2p_mismatch;
    set_place(job, node, {}, diagnosis);
    diagnosis.finding.at->call = name_message(job, ops, record);
    const auto departs = [](const RankOps& side, const DumpOp& op) {
      const std::optional<Departure> departure = find_departure(side, op);
      return departure && departure->op == &op && departure->context > 1;
    };
    const bool i_depart = departs(ops, *node.ops.front());
    const bool they_depart = departs(*other.ops, *other.op);
    diagnosis.finding.tie = i_depart == they_depart;
    if (i_depart || !they_depart) {
      diagnosis.finding.culprits.insert(ops.dump->rank);
    }
    if (they_depart || !i_depart) {
      diagnosis.finding.culprits.insert(other.rank);
    }
    diagnosis.confidence = diagnosis.finding.tie ? Confidence::medium : Confidence::high;
    diagnosis.finding.headline = fmt::format("{} of rank {} and {} of rank {} disagree", mine.op,
                                             ops.dump->rank, theirs.op, other.rank);
    diagnosis.finding.cause = fmt::format("rank {} has {}, rank {} has {}", ops.dump->rank,
                                          arguments_phrase(mine), other.rank, arguments_phrase(theirs));
    diagnosis.finding.advice = "send and receive the same number of elements of the same dtype";
    diagnosis.evidence.push_back(diagnosis.finding.cause);
    if (!diagnosis.finding.tie) {
      diagnosis.evidence.push_back(
          fmt::format("earlier messages of {} were different", ranks_phrase(diagnosis.finding.culprits)));
    }
    return diagnosis;
  }
  return std::nullopt;
}

}  // namespace rollcall::check
