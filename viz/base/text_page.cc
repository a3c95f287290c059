#include "viz/base/text_page.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "sim/base/expects.h"

namespace rollcall::viz {

namespace {

constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();
// A text may be this wide, however far to the right it begins.
constexpr std::size_t least_text_width = 40;
constexpr std::size_t column_gap = 2;
constexpr std::string_view frame_bar = "   |";

std::string spaces(std::size_t count) { return std::string(count, ' '); }

std::size_t width_left(std::size_t column, std::size_t width) {
  return std::max(least_text_width, width > column ? width - column : 0);
}

}  // namespace

void TextPage::put_padded(std::string_view text, std::size_t width, Look look) {
  put(text, look);
  put(spaces(width - std::min(width, display_width(text))));
}

void TextPage::put_wrapped(std::string_view text, std::size_t column, Look look) {
  std::size_t indent = 0;
  for (const std::string& line : wrap(text, width_left(column, width_))) {
    put(spaces(indent));
    put(line, look);
    end_line();
    indent = column;
  }
}

// Trailing spaces would be invisible differences between reports.
void TextPage::end_line() {
  text_.erase(text_.find_last_not_of(' ') + 1);
  text_ += '\n';
}

void TextPage::headline(std::string_view word, Look look, std::string_view sentence) {
  put(word, look);
  put(": ", Look::strong);
  put_wrapped(sentence, word.size() + 2, Look::strong);
}

void TextPage::sentence(std::string_view word, Look look, std::string_view text) {
  put(word, look);
  put(": ", Look::strong);
  put(printable(text), Look::strong);
  end_line();
}

void TextPage::arrow(std::string_view place) {
  put("  --> ", Look::frame);
  put(printable(place));
  end_line();
}

void TextPage::frame_line() {
  put(frame_bar, Look::frame);
  end_line();
}

void TextPage::excerpt(std::int64_t number, std::string_view line, int mark) {
  put(fmt::format("{:>2} |", number), Look::frame);
  put(spaces(column_gap));
  put(line);
  end_line();
  if (mark >= 0) {
    put(frame_bar, Look::frame);
    put(spaces(column_gap + static_cast<std::size_t>(mark)));
    put("^", Look::error);
    end_line();
  }
}

void TextPage::frame_rows(const std::vector<Row>& rows) { put_rows(rows, frame_bar, column_gap, width_); }

void TextPage::rows(const std::vector<Row>& rows, std::size_t indent) {
  put_rows(rows, "", indent, unbounded);
}

void TextPage::steps(const std::vector<Row>& rows, std::size_t indent) { put_rows(rows, "", indent, width_); }

void TextPage::put_rows(const std::vector<Row>& rows, std::string_view frame, std::size_t indent,
                        std::size_t width) {
  std::size_t label_width = 0;
  for (const Row& row : rows) {
    label_width = std::max(label_width, display_width(row.label));
  }
  label_width += label_width > 0 ? column_gap : 0;
  const std::size_t text_column = frame.size() + indent + label_width;
  for (const Row& row : rows) {
    std::string_view label = row.label;
    for (const std::string& line : wrap(row.text, width_left(text_column, width))) {
      put(frame, Look::frame);
      put(spaces(indent));
      put_padded(label, label_width, row.label_look);
      put(line, row.text_look);
      end_line();
      label = {};
    }
  }
}

namespace {

std::size_t width_of(const Table::Column& column) {
  std::size_t width = display_width(column.title);
  for (const std::string& cell : column.cells) {
    width = std::max(width, display_width(cell));
  }
  return width;
}

// The number of columns that fit, from the left; at least two. The others are written below their
// row.
std::size_t columns_that_fit(const Table& table, std::size_t width) {
  std::size_t count = 0;
  for (std::size_t used = 0; count < table.columns.size(); ++count) {
    used += column_gap + width_of(table.columns[count]);
    if (used > width && count >= 2) {
      break;
    }
  }
  return count;
}

// "from gradients at train.json:12:5"
std::string rest_of_row(const Table& table, std::size_t first, std::size_t row) {
  std::string text;
  for (std::size_t i = first; i < table.columns.size(); ++i) {
    const std::string& cell = table.columns[i].cells[row];
    text += cell.empty() ? "" : (text.empty() ? "" : " ") + table.columns[i].title + " " + cell;
  }
  return text;
}

}  // namespace

void TextPage::frame_table(const Table& table) {
  const std::size_t fitting = columns_that_fit(table, width_ - frame_bar.size());
  const std::span columns(table.columns.data(), fitting);
  // Writes one line of the table; `cell` returns a column's text and its look.
  const auto put_line = [&](auto cell) {
    put(frame_bar, Look::frame);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto [text, look] = cell(columns[i], i);
      put(spaces(column_gap));
      put_padded(text, width_of(columns[i]), look);
    }
    end_line();
  };
  using Cell = std::pair<std::string, Look>;
  put_line([](const Table::Column& column, std::size_t) { return Cell(column.title, Look::faint); });
  for (std::size_t row = 0; row < table.looks.size(); ++row) {
    put_line([&](const Table::Column& column, std::size_t i) {
      expects(column.cells.size() == table.looks.size(), "every column of a table has a cell for every row");
      return Cell(column.cells[row], i == 0 ? table.looks[row] : Look::plain);
    });
    if (const std::string rest = rest_of_row(table, fitting, row); !rest.empty()) {
      put(frame_bar, Look::frame);
      put(spaces(2 * column_gap + width_of(columns.front())));
      put(rest);
      end_line();
    }
  }
  const bool underline =
      std::ranges::any_of(columns, [](const Table::Column& column) { return column.differs; });
  if (underline) {
    put_line([](const Table::Column& column, std::size_t) {
      return Cell(std::string(column.differs ? width_of(column) : 0, '^'), Look::error);
    });
  }
}

void TextPage::note(std::string_view key, std::string_view text) {
  put("   = ", Look::frame);
  put(key, Look::strong);
  put(": ");
  put_wrapped(text, 7 + key.size(), Look::plain);  // "   = ", the key, ": "
}

void TextPage::note_unless_empty(std::string_view key, std::string_view text) {
  if (!text.empty()) {
    note(key, text);
  }
}

void TextPage::line(std::string_view key, std::string_view text, Look text_look) {
  put(key, Look::strong);
  put(": ");
  put(printable(text), text_look);
  end_line();
}

}  // namespace rollcall::viz
