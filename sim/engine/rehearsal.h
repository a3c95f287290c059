#pragma once

// Rehearsal: an outlook on a program that can be run again on the simulator. Running each rank alone, with calls that
// complete at once, shows what it would call next. Results are the rank's own inputs then, so a program that branches
// on a result may take another way. Running all ranks together once more shows the calls around a hook.
//
// The program's side effects happen again: Apart keeps them out of this process.

#include <optional>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/match/outlook.h"

namespace rollcall::sim {

class Rehearsal final : public check::Outlook {
 public:
  // As for sim::run. A rehearsal has no observers, and it takes the usual way at every decision.
  Rehearsal(const Options& options, Program program);

  // Cuts off endless programs.
  std::vector<check::RankProgram> programs(const std::vector<Rank>& ranks) const override;
  check::StepLog steps(const std::vector<Rank>& ranks) const override;
  bool can_run_again() const override { return options_.tries_repairs; }
  std::optional<FindingKind> outcome_of(const check::CallEdits& edits) const override;

 private:
  Options options_;
  Program program_;
};

}  // namespace rollcall::sim
