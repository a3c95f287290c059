#include "viz/html/html_table.h"

#include <algorithm>

#include "viz/base/text_style.h"
#include "viz/rows/phrases.h"

namespace rollcall::viz {

void HtmlTable::drop_empty_columns() {
  for (std::size_t column = titles.size(); column-- > 0;) {
    const auto at = static_cast<std::ptrdiff_t>(column);
    const bool empty = std::ranges::all_of(
        rows, [column](const std::vector<Cell>& row) { return row[column].text.empty(); });
    if (empty) {
      titles.erase(titles.begin() + at);
      for (std::vector<Cell>& row : rows) {
        row.erase(row.begin() + at);
      }
    }
  }
}

namespace {

// A table with this many rows gets a filter, if scripts run.
constexpr std::size_t rows_to_filter = 20;

// Text up to this width stays on one line.
constexpr std::size_t line_max = 28;
// Text up to this width does so even in a narrow window: "rank 0", "float32".
constexpr std::size_t short_max = 8;

std::string classes_of(const HtmlTable::Cell& cell) {
  const std::size_t size = std::max(display_width(cell.text), display_width(cell.note));
  const std::string length = size > line_max ? "long" : size > 0 && size <= short_max ? "short" : "";
  return cell.look + (cell.look.empty() || length.empty() ? "" : " ") + length;
}

// `title`: the title of its column, for rows that may be shown as cards; or empty.
void write_cell(Markup& out, const HtmlTable::Cell& cell, std::string_view title) {
  const bool is_heading = cell.is_heading && !(cell.text.empty() && cell.note.empty());
  const std::string_view tag = is_heading ? "th" : "td";
  out.open(tag, {{"class", classes_of(cell)},
                 {"align", "left"},
                 {"valign", "top"},
                 {"scope", is_heading ? "row" : ""},
                 {"data-title", title}});
  if (cell.is_code && !cell.text.empty()) {
    out.element("code", cell.text);
  } else {
    out.text(cell.text);
  }
  if (const std::string brief = folded_text(cell.note); brief != cell.note) {
    out.open("details", {{"class", "folded"}})
        .element("summary", brief)
        .element("small", cell.note)
        .close("details");
  } else if (!cell.note.empty()) {
    out.single("br", {}).element("small", cell.note);
  }
  out.close(tag);
}

}  // namespace

void open_table(Markup& out, std::string_view looks, const std::vector<std::string>& titles) {
  out.open("div", {{"class", "scroll"}});
  out.open("table", {{"class", looks}, {"border", "1"}, {"cellpadding", "5"}, {"cellspacing", "0"}}).line();
  out.open("thead").open("tr");
  for (const std::string& title : titles) {
    // A screen reader would announce an empty heading.
    title.empty() ? out.element("td", "") : out.element("th", title, {{"align", "left"}, {"scope", "col"}});
  }
  out.close("tr").close("thead").line().open("tbody").line();
}

void close_table(Markup& out) { out.close("tbody").close("table").close("div").line(); }

void write_table(Markup& out, const HtmlTable& table, std::string_view look) {
  std::string looks(look);
  if (table.rows.size() >= rows_to_filter) {
    looks += " ";
    looks += filtered_look;
  }
  open_table(out, looks, table.titles);
  for (const std::vector<HtmlTable::Cell>& row : table.rows) {
    out.open("tr");
    for (std::size_t i = 0; i < row.size(); ++i) {
      write_cell(out, row[i], look == "states" ? std::string_view(table.titles[i]) : std::string_view());
    }
    out.close("tr").line();
  }
  close_table(out);
}

}  // namespace rollcall::viz
