#pragma once

// Turns a job's recordings and their diagnosis into a report, so that everything that shows reports (pages, traces)
// can show dumps as well.

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

// Groups are named as in the timeline; without a fault, the verdict is Completed. `source` says where the
// recordings are.
RecordedReport report_of(const check::JobDump& job, const Diagnosis& diagnosis, const std::string& source);

}  // namespace rollcall::traces
