#pragma once

// A diagnosis as one HTML file, in the order of a report's page: the sentence with its evidence and how sure it
// is, who called what, where every rank is, who waits for whom, the recorded calls as a timeline and side by
// side.

#include <iosfwd>

#include "sim/report/diagnosis.h"
#include "sim/report/report.h"
#include "viz/json/json_diagnosis.h"

namespace rollcall::viz {

// `recorded` is what the diagnosis was made from, as a report (traces/dumps/dump_report.h). `remarks` are about the
// files. Whether the writing succeeded is the stream's state.
void html_diagnosis(const Diagnosis& diagnosis, const Report& recorded, const Remarks& remarks,
                    std::ostream& out);

}  // namespace rollcall::viz
