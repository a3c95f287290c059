#pragma once

#include <string>
#include <vector>

#include "sim/report/source_line.h"
#include "viz/base/text_page.h"

namespace rollcall::viz {

// Shows the lines in the file of `first`, which the arrow above them has named; nothing if it could not be read.
void put_excerpts(TextPage& page, const std::vector<SourceLine>& sources, const std::string& first);

}  // namespace rollcall::viz
