#pragma once

// A report as one self-contained HTML file: no network, no server, no other file. Its first part
// consists of tables and SVG, and works where scripts and styles are forbidden (as in Jenkins and mail readers);
// the timeline below it is drawn by a script in the file.

#include <iosfwd>

#include "sim/report/report.h"

namespace rollcall::viz {

// A report with spans gets a timeline and the sequences of calls; one without says so. A write error shows in the
// stream's state.
void html_report(const Report& report, std::ostream& out);

}  // namespace rollcall::viz
