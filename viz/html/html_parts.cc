#include "viz/html/html_parts.h"

#include <algorithm>

#include <fmt/core.h>

#include "viz/rows/phrases.h"
#include "viz/rows/variants_table.h"

namespace rollcall::viz {

namespace {

using Cell = HtmlTable::Cell;

HtmlTable html_table_of(const Table& table, const std::vector<Variant>& variants, const RankSet& culprits) {
  HtmlTable result;
  for (const Table::Column& column : table.columns) {
    result.titles.push_back(column.title);
  }
  for (std::size_t row = 0; row < variants.size(); ++row) {
    const bool is_culprit = !culprits.empty() && culprits.contains(variants[row].ranks);
    std::vector<Cell> cells;
    for (const Table::Column& column : table.columns) {
      const bool differs = column.differs && !cells.empty();
      cells.push_back(cells.empty() ? ranks_cell(variants[row].ranks, is_culprit)
                                    : Cell{.text = column.cells[row], .look = differs ? "differs" : ""});
    }
    result.rows.push_back(std::move(cells));
  }
  return result;
}

}  // namespace

void html_heading(Markup& out, std::string_view text) { out.element("h2", text).line(); }

void html_paragraph(Markup& out, std::string_view key, std::string_view text, std::string_view look) {
  if (!text.empty()) {
    out.open("p", {{"class", look}}).element("b", key).text(" ").text(text).close("p").line();
  }
}

void html_counted(Markup& out, std::size_t hidden, std::string_view noun) {
  if (hidden > 0) {
    out.element("p", fmt::format("... and {} more", count_phrase(static_cast<std::int64_t>(hidden), noun)))
        .line();
  }
}

HtmlTable::Cell ranks_cell(const RankSet& ranks, bool is_culprit) {
  return {.text = std::string(is_culprit ? culprit_sign : "") + ranks_phrase(ranks),
          .note = is_culprit ? "culprit" : "",
          .look = is_culprit ? "culprit" : "",
          .is_heading = true};
}

void html_variants_table(Markup& out, const std::vector<Variant>& all, const RankSet& culprits,
                         VariantsStyle style) {
  std::vector<Variant> variants = all;
  variants.resize(std::min(variants.size(), page_variants_max));
  write_table(out, html_table_of(variants_table(variants, culprits, style), variants, culprits), "variants");
  html_counted(out, all.size() - variants.size(), "variant");
}

}  // namespace rollcall::viz
