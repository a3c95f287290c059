#pragma once

// The table "who called what in one slot": the calls side by side, the difference underlined.

#include <vector>

#include "sim/report/verdict.h"
#include "viz/base/text_page.h"

namespace rollcall::viz {

struct VariantsStyle {
  bool with_device = false;
  bool sizes_may_differ = false;  // for calls with split sizes, whose mismatches another table shows
};
VariantsStyle variants_style(const Verdict& verdict);

// Leaves out columns that are empty for all ranks, and the device's column unless it is asked for. Culprits are marked.
Table variants_table(const std::vector<Variant>& variants, const RankSet& culprits, VariantsStyle style = {});

}  // namespace rollcall::viz
