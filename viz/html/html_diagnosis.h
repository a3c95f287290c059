#pragma once

// A diagnosis as one HTML file, in the order of a report's page: the sentence with its evidence and its
// confidence, the calls of each rank, where every rank is, which ranks wait for which, and the recorded calls as a
// timeline and side by side.

#include <iosfwd>

#include "sim/report/diagnosis.h"
#include "sim/report/report.h"
#include "viz/json/json_diagnosis.h"

namespace rollcall::viz {

// `recorded` is the report that the diagnosis was made from (traces/dumps/dump_report.h). `remarks` are about the
// files. A write error shows in the stream's state.
void html_diagnosis(const Diagnosis& diagnosis, const Report& recorded, const Remarks& remarks,
                    std::ostream& out);

}  // namespace rollcall::viz
