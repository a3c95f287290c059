#pragma once

// Repair: the smallest change to the calls of ranks with which the job runs to its end. The changed ranks are to blame,
// and the run after the change is the proof.

#include <optional>
#include <vector>

#include "sim/match/outlook.h"
#include "sim/repair/proposals.h"
#include "sim/report/verdict.h"

namespace rollcall::check {

struct Alternative {
  CallEdits edits{};
  RankSet ranks{};
};

struct FoundRepair {
  CallEdits edits{};
  RankSet ranks{};         // that are edited
  std::int64_t score = 0;  // lower is likelier; below 0 it makes the job more regular than it is
  bool supported = false;  // the calls at the edits also occur elsewhere in the job
  std::vector<Alternative>
      alternatives{};  // about as likely as this one, of other ranks; the job runs with them, too
};

// True if other calls may fix `verdict`.
bool is_repairable(const Verdict& verdict);

struct RepairSearch {
  std::optional<FoundRepair> found{};  // empty if no change that was tried helps
  std::int64_t tried = 0;
  bool is_cut_short = false;  // there are more changes than may be tried
};

// For a job that hangs, or disagrees, in these calls of `lists`.
RepairSearch find_repair(const CallLists& lists, const Hang& hang, const Outlook& outlook);

// `programs` of all ranks, ascending.
RepairSearch find_repair(const Verdict& verdict, const std::vector<RankProgram>& programs,
                         const Outlook& outlook);

}  // namespace rollcall::check
