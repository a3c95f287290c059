#pragma once

// A table of an HTML report: rows of texts, some of them marked. Readable without a style sheet: it has
// borders, and its marks are words or signs in the text.

#include <string>
#include <vector>

#include "viz/html/markup.h"

namespace rollcall::viz {

struct HtmlTable {
  struct Cell {
    std::string text;
    std::string note{};       // below the text, smaller
    std::string look{};       // a class of the style sheet: "culprit", "differs", "open"
    bool is_heading = false;  // of its row
    bool is_code = false;
  };
  std::vector<std::string> titles;
  std::vector<std::vector<Cell>> rows;

  // Removes columns that are empty in every row.
  void drop_empty_columns();
};

// The class that marks long tables for viz/html/timeline/filter.js, which lets the reader filter their rows if scripts
// run. A row's `data-state` may name the group of rows it belongs to.
inline constexpr std::string_view filtered_look = "filtered";

// What stands before a table's rows, and behind them. A table scrolls on its own if it is too wide.
void open_table(Markup& out, std::string_view looks, const std::vector<std::string>& titles);
void close_table(Markup& out);

void write_table(Markup& out, const HtmlTable& table, std::string_view look = "");

}  // namespace rollcall::viz
