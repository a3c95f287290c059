#pragma once

// The table "who called what in one slot": the calls side by side, the difference underlined.

#include <vector>

#include "sim/report/verdict.h"
#include "viz/base/text_page.h"

namespace rollcall::viz {

// Columns that are empty for everyone are left out, and the device's unless `with_device`. Culprits
// are marked.
Table variants_table(const std::vector<Variant>& variants, const RankSet& culprits, bool with_device);

}  // namespace rollcall::viz
