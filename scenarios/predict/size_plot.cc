// A table as an SVG: size on a logarithmic axis, bus bandwidth on a linear one, and the algorithm at each
// change. Text and lines only, so that it can be put in a README as it is.

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "scenarios/predict/size_table.h"
#include "viz/base/xml_text.h"

namespace rollcall::predict {

namespace {

constexpr double width = 720;
constexpr double height = 360;
constexpr double left = 60;
constexpr double right = 20;
constexpr double top = 40;
constexpr double bottom = 50;

// A round number of GB/s that is at least the highest point.
double ceiling_of(double highest) {
  double power = 1;
  while (power * 10 < highest) {
    power *= 10;
  }
  return std::max(1.0, std::ceil(highest / power) * power);
}

std::string size_label(std::int64_t bytes) {
  constexpr std::string_view letters = "BKMGTPE";
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < letters.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, letters[unit]);
}

// Positions are those of rows: sizes double, so equal steps make a logarithmic axis.
class Plot {
 public:
  explicit Plot(const SizeTable& table) : table_(table) {
    for (const SizeRow& row : table.rows) {
      highest_ = std::max(highest_, row.busbw);
    }
    ceiling_ = ceiling_of(highest_);
  }

  std::string draw() const {
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
        "<text x=\"{2}\" y=\"20\" font-size=\"14\">{3} on {4}: predicted bus bandwidth (GB/s)</text>\n",
        width, height, left, to_string(table_.op), viz::xml_text(table_.cluster.name));
    svg += grid();
    svg += curve();
    svg += changes();
    return svg + "</svg>\n";
  }

 private:
  double x(std::size_t index) const {
    const double steps = std::max<double>(1, static_cast<double>(table_.rows.size()) - 1);
    return left + (width - left - right) * static_cast<double>(index) / steps;
  }
  double y(double busbw) const { return height - bottom - (height - top - bottom) * busbw / ceiling_; }

  std::string grid() const {
    std::string svg;
    for (int line = 0; line <= 4; ++line) {
      const double value = ceiling_ * line / 4;
      svg += fmt::format(
          "<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n"
          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
          left, y(value), width - right, y(value), left - 6, y(value) + 4, value);
    }
    const std::size_t stride = table_.rows.size() / 12 + 1;
    for (std::size_t i = 0; i < table_.rows.size(); i += stride) {
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(i),
                         height - bottom + 18, size_label(table_.rows[i].bytes));
    }
    return svg;
  }

  std::string curve() const {
    std::string points;
    for (std::size_t i = 0; i < table_.rows.size(); ++i) {
      points += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ", x(i), y(table_.rows[i].busbw));
    }
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#2563eb\" stroke-width=\"2\"/>\n",
                       points);
  }

  std::string changes() const {
    std::string svg;
    for (std::size_t i = 0; i < table_.rows.size(); ++i) {
      const SizeRow& row = table_.rows[i];
      const bool is_new = i == 0 || row.algorithm != table_.rows[i - 1].algorithm ||
                          row.protocol != table_.rows[i - 1].protocol;
      if (is_new) {
        svg += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#2563eb\"/>\n"
            "<text x=\"{:.1f}\" y=\"{:.1f}\">{} {}</text>\n",
            x(i), y(row.busbw), x(i) + 5, std::max(top, y(row.busbw) - 7), row.algorithm, row.protocol);
      }
    }
    return svg;
  }

  const SizeTable& table_;
  double highest_ = 0;
  double ceiling_ = 1;
};

}  // namespace

std::string svg_of(const SizeTable& table) { return Plot(table).draw(); }

}  // namespace rollcall::predict
