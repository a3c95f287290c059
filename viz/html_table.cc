#include "viz/html_table.h"

#include <algorithm>

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

void write_cell(Markup& out, const HtmlTable::Cell& cell) {
  const std::string_view tag = cell.is_heading ? "th" : "td";
  out.open(
      tag,
      {{"class", cell.look}, {"align", "left"}, {"valign", "top"}, {"scope", cell.is_heading ? "row" : ""}});
  if (cell.is_code && !cell.text.empty()) {
    out.element("code", cell.text);
  } else {
    out.text(cell.text);
  }
  if (!cell.note.empty()) {
    out.single("br", {}).element("small", cell.note);
  }
  out.close(tag);
}

}  // namespace

void write_table(Markup& out, const HtmlTable& table, std::string_view look) {
  out.open("table", {{"class", look}, {"border", "1"}, {"cellpadding", "5"}, {"cellspacing", "0"}}).line();
  out.open("thead").open("tr");
  for (const std::string& title : table.titles) {
    out.element("th", title, {{"align", "left"}, {"scope", "col"}});
  }
  out.close("tr").close("thead").line().open("tbody").line();
  for (const std::vector<HtmlTable::Cell>& row : table.rows) {
    out.open("tr");
    for (const HtmlTable::Cell& cell : row) {
      write_cell(out, cell);
    }
    out.close("tr").line();
  }
  out.close("tbody").close("table").line();
}

}  // namespace rollcall::viz
