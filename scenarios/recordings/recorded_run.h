#pragma once

// A scenario's run as PyTorch's Flight Recorders would have recorded it.

#include <cstdint>
#include <optional>

#include "scenarios/format/scenario.h"
#include "sim/diagnose/dump.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct RecordedRun {
  check::JobDump job;    // of the ranks whose processes still existed; may have none
  RankSet without_dump;  // the others: they had crashed, raised, or exited
  Report report;
};

// Runs `scenario`; the dumps are from the moment when a watchdog would have noticed that nothing moves, or
// from the end. If schedules have different outcomes, from the first one that fails.
RecordedRun record_run(const Scenario& scenario, std::optional<std::uint64_t> seed = {});

}  // namespace rollcall::scenario
