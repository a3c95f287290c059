#pragma once

// Recordings of a job and their diagnosis as a report, so that what shows reports shows dumps: pages and traces.

#include <string>
#include <vector>

#include "sim/diagnose/dump.h"
#include "sim/report/diagnosis.h"
#include "sim/report/report.h"
#include "traces/dumps/dump_timeline.h"

namespace rollcall::traces {

struct RecordedReport {
  Report report;
  std::vector<RecordedWait> waits;
};

// Groups are named as in the timeline; where there is no fault the verdict is Completed. `source` says where the
// recordings are.
RecordedReport report_of(const check::JobDump& job, const Diagnosis& diagnosis, const std::string& source);

}  // namespace rollcall::traces
