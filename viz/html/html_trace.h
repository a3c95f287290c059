#pragma once

// A recorded timeline as one HTML file. It has not been judged, so the page has no verdict.

#include <iosfwd>
#include <string>

#include "sim/report/report.h"

namespace rollcall::viz {

// `source` is where the timeline came from. A write error shows in the stream's state.
void html_trace(const Report& recorded, const std::string& source, std::ostream& out);

}  // namespace rollcall::viz
