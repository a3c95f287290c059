// A rank that waits in a call that most have not made, and is ahead of them: it made an extra call earlier.

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/diagnose/dump_compare.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

// The extra call that `odd` made: all calls before `position` paired, but from the extra call on with calls from other
// lines. Null if there is none.
const DumpOp* own_call(const DumpView& view, const GroupMember& odd, const GroupMember& usual,
                       std::int64_t position) {
  const Shift shift = find_shift(view, odd, usual, position);
  return shift.kind == Shift::Kind::extra && shift.position < position ? odd.at(shift.position) : nullptr;
}

// A member of the majority that has not made the call of a node, though its dump would show it. Null if the members
// without the call are not a majority.
const GroupMember* usual_member(const DumpCase& job, const WaitNode& node) {
  const GroupMember* usual = nullptr;
  std::size_t count = 0;
  for (const Blocker& blocker : node.blockers) {
    const GroupMember* member = job.view.calls_of(node.group).member(blocker.rank);
    if (blocker.why == Blocker::Why::not_issued && member != nullptr && !member->collectives.empty()) {
      usual = usual == nullptr ? member : usual;
      ++count;
    }
  }
  return count > node.ranks.size() ? usual : nullptr;
}

}  // namespace

std::optional<Diagnosis> judge_ahead(const DumpCase& job) {
  for (const WaitNode& node : job.waits.nodes) {
    const bool has_past = node.kind == DumpOp::Kind::collective && node.position > 1;
    const GroupMember* usual = has_past ? usual_member(job, node) : nullptr;
    if (usual == nullptr || node.ranks.size() != 1) {
      continue;
    }
    const GroupMember& odd = *job.view.calls_of(node.group).member(node.ranks.front());
    const DumpOp* own = own_call(job.view, odd, *usual, node.position);
    if (own == nullptr) {
      continue;
    }
    Diagnosis diagnosis = diagnosis_of(FindingKind::extra_collective, Confidence::medium, ranks_of(node));
    Finding& finding = diagnosis.finding;
    set_place(job, node, finding.culprits, diagnosis);
    diagnosis.first_symptom_seq = finding.at->call.seq;
    finding.at->call = name_call(job, *odd.ops, *own);
    finding.headline = fmt::format("{} alone made {}; its next calls met the wrong ones",
                                   ranks_phrase(finding.culprits), call_phrase(finding.at->call));
    finding.cause = "the calls after it agree in size and dtype, so they paired with each other unnoticed";
    finding.advice = "make the call on all ranks or on none: look for a branch on the rank around it";
    return diagnosis;
  }
  return std::nullopt;
}

}  // namespace rollcall::check
