#pragma once

// The sections of a page that show calls side by side. They need a timeline, and write nothing without one.

#include <functional>
#include <string>

#include "sim/report/report.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

// Returns the name of a set of ranks: "ranks 1-3".
using RankNames = std::function<std::string(const RankSet&)>;

// Writes the calls that a join hook makes for ranks that have joined, next to the calls of the others. Returns whether
// they differ.
bool html_shadows(Markup& out, const Report& report);
// Writes the calls of a failed run side by side, around the first difference.
void html_sequences(Markup& out, const Report& report, const RankNames& name = ranks_phrase);

}  // namespace rollcall::viz
