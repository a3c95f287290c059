#pragma once

// A recorded job as a Report, so that the page and the traces that show simulations show it too.

#include <vector>

#include "sim/check/dump.h"
#include "sim/report/diagnosis.h"
#include "sim/report/report.h"

namespace rollcall::check {

// Spans that wait for what another one stands for, as indexes into the timeline's.
struct RecordedWait {
  std::uint32_t cause = 0;
  std::vector<std::uint32_t> waiting;
};

struct RecordedReport {
  Report report;
  std::vector<RecordedWait> waits;  // for calls that were never issued
};

// With a timeline: one span per call, from when it was issued to when it was noticed to have finished, on clocks
// made one by the calls that ranks finished together; recordings without times have one call per microsecond. A
// rank that owes a call has an open span at the end, for which others wait.
RecordedReport recorded_report(const JobDump& job, const Diagnosis& diagnosis);

}  // namespace rollcall::check
