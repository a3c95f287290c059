// Gloo's recorder does not list the members of groups, so a group has the members that have used it. Ranks that wait
// alone in the first call on a group wait for members that the dumps do not name.

#include <algorithm>

#include <fmt/core.h>

#include "sim/diagnose/dump_case.h"
#include "sim/wording/phrasing.h"

namespace rollcall::check {

namespace {

bool lacks_members(const DumpCase& job, const WaitNode& node) {
  const DumpGroup& group = job.view.job.groups[node.group];
  return recorded_call(job, node).is_of_gloo() && group.is_by_use && node.kind == DumpOp::Kind::collective &&
         group.members.size() == node.ranks.size();
}

}  // namespace

std::optional<Diagnosis> judge_unlisted(const DumpCase& job) {
  const bool all_lack =
      !job.waits.nodes.empty() &&
      std::ranges::all_of(job.waits.nodes, [&job](const WaitNode& node) { return lacks_members(job, node); });
  const RankSet waiting = ranks_in(job.waits.node_of);
  RankSet free;
  for (const RankDump& dump : job.view.job.ranks) {
    free.insert(waiting.contains(dump.rank) ? RankSet() : RankSet{dump.rank});
  }
  const bool is_crossing = free.empty() && job.waits.nodes.size() > 1;
  if (job.progress == Progress::running || !all_lack || (!is_crossing && free.size() != 1)) {
    return std::nullopt;
  }
  const WaitNode& node = job.waits.nodes.front();
  Diagnosis diagnosis =
      diagnosis_of(is_crossing ? FindingKind::cross_group_deadlock : FindingKind::stuck_host, Confidence::low,
                   is_crossing ? waiting : free);
  Finding& finding = diagnosis.finding;
  finding.tie = is_crossing;
  set_place(job, node, free, diagnosis);
  if (is_crossing) {
    finding.headline =
        fmt::format("{} wait in different groups for members that are not listed", ranks_phrase(waiting));
    finding.cause = "each may wait for another that uses its groups in a different order";
    finding.advice = groups_in_one_order;
  } else {
    finding.headline = fmt::format(
        "all other ranks wait, in groups whose members are not listed; {} does not", ranks_phrase(free));
    finding.cause = fmt::format("{} may be the member that they wait for", ranks_phrase(free));
    finding.advice = fmt::format("check what {} did after its last recorded call", ranks_phrase(free));
    diagnosis.alternatives = {FindingKind::partial_subgroup, FindingKind::early_exit};
  }
  diagnosis.evidence.push_back(
      "Gloo's recorder does not list the members of groups, and these have no other callers yet");
  diagnosis.would_settle.push_back(
      "the host stacks of all ranks (py-spy dump), and the code that makes the groups");
  return diagnosis;
}

}  // namespace rollcall::check
