#pragma once

// The sections of a page that lay calls side by side. They need a timeline, and write nothing without one.

#include <functional>
#include <string>

#include "sim/report/report.h"
#include "viz/html/markup.h"

namespace rollcall::viz {

// How ranks are called: "ranks 1-3".
using RankNames = std::function<std::string(const RankSet&)>;

// What a join hook calls for ranks that have joined, next to what the others do. Whether there is a difference in it.
bool html_shadows(Markup& out, const Report& report);
// The calls side by side around the first difference, of a run that went wrong.
void html_sequences(Markup& out, const Report& report, const RankNames& name = ranks_phrase);

}  // namespace rollcall::viz
