#pragma once

// Repair: the smallest change of what ranks call under which the job runs to its end. Who is changed is to blame, and
// the run after the change is the proof.

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
  std::int64_t score = 0;  // less for likelier ones; below 0 it makes the job more like itself than it is
  bool supported = false;  // the job does elsewhere what it does with the edits
  std::vector<Alternative>
      alternatives{};  // about as likely as this one, of other ranks; the job runs with them, too
};

// May `verdict` be mended by other calls?
bool is_repairable(const Verdict& verdict);

struct RepairSearch {
  std::optional<FoundRepair> found{};  // nothing where no change that was tried helps
  std::int64_t tried = 0;
  bool is_cut_short = false;  // there are more changes than may be tried
};

// Of a job that hangs, or disagrees, in these calls of `lists`.
RepairSearch find_repair(const CallLists& lists, const Hang& hang, const Outlook& outlook);

// `programs` of all ranks, ascending.
RepairSearch find_repair(const Verdict& verdict, const std::vector<RankProgram>& programs,
                                       const Outlook& outlook);

}  // namespace rollcall::check
