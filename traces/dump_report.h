#pragma once

// Flight Recorder dumps as a report, so that what shows reports shows dumps: the records as a timeline, and
// where every rank was when it wrote. A collective begins when it was queued and the one before it in its
// group had ended; of calls that never did, the first few are there. Each rank's times are its own clock's;
// without times, a record takes a microsecond, in its rank's order.

#include <string>

#include "sim/check/dump.h"
#include "sim/report/diagnosis.h"
#include "sim/report/report.h"

namespace rollcall::traces {

// What of the dumps is in the report. A page has room for some, and the last are what matters.
inline constexpr std::size_t most_dump_spans = 1'000'000;

// The verdict is a Deadlock with the diagnosis' finding, or Completed where there is no fault; its groups are
// named as in the timeline. `source` says where the dumps are.
Report report_of(const check::JobDump& job, const Diagnosis& diagnosis, const std::string& source);

}  // namespace rollcall::traces
