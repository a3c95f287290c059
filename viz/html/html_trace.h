#pragma once

// A timeline that somebody recorded, as one HTML file. Nobody has judged it, so the page has no verdict.

#include <iosfwd>
#include <string>

#include "sim/report/report.h"

namespace rollcall::viz {

// `source` is where it came from. Whether the writing succeeded is the stream's state.
void html_trace(const Report& recorded, const std::string& source, std::ostream& out);

}  // namespace rollcall::viz
