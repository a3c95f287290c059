#pragma once

// A scenario's run as PyTorch's Flight Recorders would have kept it.

#include <cstdint>
#include <optional>

#include "scenarios/format/scenario.h"
#include "sim/diagnose/dump.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

struct RecordedRun {
  check::JobDump job;    // of the ranks whose processes were still there; may have none
  RankSet without_dump;  // the others: they had crashed, raised or left
  Report report;
};

// Runs `scenario`; the dumps are of the moment in which a watchdog would have noticed that nothing moves any
// more, or of the end. Where schedules have different outcomes, of the first one that fails.
RecordedRun record_run(const Scenario& scenario, std::optional<std::uint64_t> seed = {});

}  // namespace rollcall::scenario
