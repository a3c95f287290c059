#pragma once

// Replay: makes the decisions of a schedule again. A program that has changed may not reach them; then the first place
// where the run and the schedule diverge is recorded, and the usual way is taken from there on.

#include <optional>
#include <string>

#include "sim/explore/decision_log.h"

namespace rollcall::sim {

class Replay final : public DecisionLog {
 public:
  explicit Replay(Schedule schedule)
      : DecisionLog(schedule.orders_calls, schedule.draws_delays), followed_(std::move(schedule)) {
    know({.receivers = {followed_.receivers.begin(), followed_.receivers.end()}});
  }

  // After the run: where it diverged from the schedule, as a sentence without a period; null if it did not.
  std::optional<std::string> divergence() const;

 protected:
  std::size_t choose(const Decision& decision) override;

 private:
  Schedule followed_;
  std::size_t next_ = 0;  // of its deviations
  std::optional<std::string> divergence_;
};

}  // namespace rollcall::sim
