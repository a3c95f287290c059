#pragma once

// The parts that the sections of pages are made of.

#include <cstddef>
#include <string_view>
#include <vector>

#include "sim/report/verdict.h"
#include "viz/html/html_table.h"
#include "viz/html/markup.h"
#include "viz/rows/variants_table.h"

namespace rollcall::viz {

// Rows of variants on a page; the JSON report has them all.
inline constexpr std::size_t page_variants_max = 50;

inline constexpr std::string_view culprit_sign = "\u2717 ";

void html_heading(Markup& out, std::string_view text);
// "Cause: ..."; writes nothing if the text is empty.
void html_paragraph(Markup& out, std::string_view key, std::string_view text, std::string_view look = "");
// "... and 12 more calls"; writes nothing if none are hidden.
void html_counted(Markup& out, std::size_t hidden, std::string_view noun);
// A row's ranks, marked if they are culprits.
HtmlTable::Cell ranks_cell(const RankSet& ranks, bool is_culprit);
// A table of the ranks' calls in one slot.
void html_variants_table(Markup& out, const std::vector<Variant>& variants, const RankSet& culprits,
                         VariantsStyle style = {});

}  // namespace rollcall::viz
