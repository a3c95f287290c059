#pragma once

// LoggedOutlook: what logs say about a program besides the evidence: the calls of each rank as far as it got. If a
// rank reached the end of its program, those are all of its calls.

#include <vector>

#include "real/evidence/evidence_builder.h"
#include "sim/judge/order_warning.h"
#include "sim/match/outlook.h"

namespace rollcall::real {

class LoggedOutlook final : public check::Outlook {
 public:
  // Borrowed.
  explicit LoggedOutlook(const EvidenceBuilder& run) : run_(run) {}

  std::vector<check::RankProgram> programs(const std::vector<Rank>& ranks) const override;
  check::StepLog steps(const std::vector<Rank>& ranks) const override;
  // The call orders of all ranks.
  check::CallOrders orders() const;

 private:
  const EvidenceBuilder& run_;
};

}  // namespace rollcall::real
