#pragma once

// Rehearsal: an outlook on a program that can be run again, on the simulator. Each rank alone, with calls that complete
// at once, shows what it would call next: values are those that the rank put in, so a program that decides by a result
// may take another way there. All ranks together, once more, show which calls a hook stands among.
//
// What the program does besides calling, it does again: Apart keeps it out of this process.

#include <optional>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/match/outlook.h"

namespace rollcall::sim {

class Rehearsal final : public check::Outlook {
 public:
  // As for sim::run. Nobody watches a rehearsal, and it takes the usual way wherever there are several.
  Rehearsal(const Options& options, Program program);

  // Endless programs are cut off.
  std::vector<check::RankProgram> programs(const std::vector<Rank>& ranks) const override;
  check::StepLog steps(const std::vector<Rank>& ranks) const override;
  bool can_run_again() const override { return options_.tries_repairs; }
  std::optional<FindingKind> outcome_of(const check::CallEdits& edits) const override;

 private:
  Options options_;
  Program program_;
};

}  // namespace rollcall::sim
