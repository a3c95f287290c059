#pragma once

// Reads the lines of source that a report points at, where their files are at hand.

#include <filesystem>
#include <string>

#include "sim/report/report.h"

namespace rollcall::scenario {

// `file` is what was run: the calls' sites have its last component. Other sites are looked for where they say, and
// beside it. What cannot be read is left out.
void read_sources(Report& report, const std::filesystem::path& file);

}  // namespace rollcall::scenario
