#pragma once

// A report as one HTML file that needs nothing else: no network, no server, no other file. Its first part
// is tables and SVG, and is there when scripts and styles are forbidden (as Jenkins and mail readers do);
// the timeline below it is drawn by a script that the file carries.

#include <iosfwd>

#include "sim/report/report.h"

namespace rollcall::viz {

// A report with a timeline has the timeline and the sequences of calls; one without says so. Whether the
// writing succeeded is the stream's state.
void html_report(const Report& report, std::ostream& out);

}  // namespace rollcall::viz
