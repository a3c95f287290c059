#pragma once

// Apart: an outlook that is asked in a child process. A program in C++ that is run again there leaves this process as
// it was: its variables, its output, and its life where the program crashes on values that the others would have sent.

#include <optional>
#include <vector>

#include "sim/match/outlook.h"

namespace rollcall::sim {

class Apart final : public check::Outlook {
 public:
  // Borrowed.
  explicit Apart(const check::Outlook& inner) : inner_(inner) {}

  // Nothing where the child has died, or has not come to its end in ten seconds.
  std::vector<check::RankProgram> programs(const std::vector<Rank>& ranks) const override;
  check::StepLog steps(const std::vector<Rank>& ranks) const override;
  bool can_run_again() const override { return inner_.can_run_again(); }
  std::optional<FindingKind> outcome_of(const check::CallEdits& edits) const override;

 private:
  const check::Outlook& inner_;
};

}  // namespace rollcall::sim
