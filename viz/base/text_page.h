#pragma once

// The page a text report is written on: a headline, a frame with aligned rows, notes below it. It
// knows the layout of the page, but not the meaning of its parts. The shape is rustc's, because its
// readers are used to finding the sentence, the place, and the help there.
//
//   error[deadlock]: rank 0 never called all_reduce #5 on group world
//     --> uneven_inputs.json:14:11
//      |
//      |  rank 0     finished after 5 inputs
//      |  ranks 1-3  waiting in all_reduce #5
//      |
//      = help: wrap the loop in Join

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "viz/base/text_style.h"

namespace rollcall::viz {

// The number of rows a list shows without -v.
inline constexpr std::size_t variants_max = 12;
inline constexpr std::size_t steps_max = 8;
// The column where lists below a row begin.
inline constexpr std::size_t list_indent = 7;

struct Row {
  std::string label;  // the first column: "ranks 1-3"
  std::string text;   // may have several lines
  Look label_look = Look::plain;
  Look text_look = Look::plain;
};

// Rows of cells under a header; every column as wide as its widest cell. Columns whose values differ
// in a way the reader must see are underlined.
struct Table {
  struct Column {
    std::string title;
    std::vector<std::string> cells;
    bool differs = false;
  };
  std::vector<Column> columns;
  std::vector<Look> looks;  // of each row's first cell
};

class TextPage {
 public:
  explicit TextPage(bool color, std::size_t width = TextStyle::usual_width) : color_(color), width_(width) {}

  // "error[deadlock]: sentence", broken if it is too long; `sentence` keeps it on one line, for scripts.
  void headline(std::string_view word, Look look, std::string_view sentence);
  void sentence(std::string_view word, Look look, std::string_view text);
  // "  --> place"
  void arrow(std::string_view place);

  // A line of source, with a caret below column `mark`, from 0; -1: no caret.
  void excerpt(std::int64_t number, std::string_view line, int mark);

  // The frame: an empty line; rows, broken if they are too long; a table.
  void frame_line();
  void frame_rows(const std::vector<Row>& rows);
  void frame_table(const Table& table);

  // "   = key: text"
  void note(std::string_view key, std::string_view text);
  void note_unless_empty(std::string_view key, std::string_view text);
  // Rows without a frame. Those of `rows` are ranks' output, whose lines are not broken; those of `steps` are our own
  // words, which are.
  void rows(const std::vector<Row>& rows, std::size_t indent);
  void steps(const std::vector<Row>& rows, std::size_t indent);
  // "key: text" at the left edge, never broken, so that it can be copied.
  void line(std::string_view key, std::string_view text, Look text_look = Look::plain);

  const std::string& text() const { return text_; }

 private:
  void put_rows(const std::vector<Row>& rows, std::string_view frame, std::size_t indent, std::size_t width);
  // Writes the rest of a line that has reached this column; further lines are indented to it.
  void put_wrapped(std::string_view text, std::size_t column, Look look);
  void put_padded(std::string_view text, std::size_t width, Look look);
  void put(std::string_view text, Look look = Look::plain) { text_ += paint(text, look, color_); }
  void end_line();

  std::string text_;
  bool color_;
  std::size_t width_;
};

}  // namespace rollcall::viz
