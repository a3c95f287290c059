#pragma once

// Apart: an outlook that is asked in a child process. A C++ program that is run again there does not affect this
// process: not its variables, not its output, and not its life if the program crashes on values that other ranks would
// have sent.

#include <optional>
#include <vector>

#include "sim/match/outlook.h"

namespace rollcall::sim {

class Apart final : public check::Outlook {
 public:
  // Borrowed.
  explicit Apart(const check::Outlook& inner) : inner_(inner) {}

  // Empty if the child has died, or has not finished within ten seconds.
  std::vector<check::RankProgram> programs(const std::vector<Rank>& ranks) const override;
  check::StepLog steps(const std::vector<Rank>& ranks) const override;
  bool can_run_again() const override { return inner_.can_run_again(); }
  std::optional<FindingKind> outcome_of(const check::CallEdits& edits) const override;

 private:
  const check::Outlook& inner_;
};

}  // namespace rollcall::sim
