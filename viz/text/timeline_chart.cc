#include "viz/text/timeline_chart.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "viz/rows/activity.h"
#include "viz/rows/phrases.h"

namespace rollcall::viz {

namespace {

// The signs that a column of a row can show. Of equal shares, the later one wins, so that rare
// things are seen.
enum Sign : std::uint8_t { nothing, compute, transfer, waiting, stuck, sign_count };

constexpr std::array<std::string_view, sign_count> unicode_signs{"·", "█", "▓", "░", "╳"};
constexpr std::array<std::string_view, sign_count> ascii_signs{".", "#", "=", "-", "x"};
constexpr std::array<std::string_view, sign_count> meanings{"nothing", "computing", "transferring",
                                                            "waiting for others", "never returned"};

using Row = std::vector<Sign>;

// How long one of the intervals is active in the column. Binary search finds those that overlap it.
Duration within(const Intervals& intervals, const Interval& column) {
  const auto first = std::ranges::upper_bound(intervals, column.start, {}, &Interval::end);
  const auto last = std::ranges::lower_bound(intervals, column.end, {}, &Interval::start);
  return first < last ? overlap(Intervals(first, last), Intervals{column}) : 0;
}

struct Axis {
  Time from = 0;
  Time until = 0;
  std::size_t columns = 1;

  Interval column(std::size_t index) const {
    const auto at = [this](std::size_t i) {
      __extension__ using Wide = __int128;  // a year in nanoseconds times the columns
      const Wide offset = static_cast<Wide>(until - from) * static_cast<Wide>(i) / static_cast<Wide>(columns);
      return from + static_cast<Duration>(offset);
    };
    return {at(index), at(index + 1)};
  }
};

// What a rank did longest in a column.
Sign sign_of(const RankActivity& activity, const Interval& column) {
  std::array<Duration, sign_count> share{};
  share[compute] = within(activity.compute, column);
  share[transfer] = within(activity.transfer, column);
  share[stuck] = within(activity.stuck, column);
  share[waiting] = within(activity.communication, column) - share[transfer] - share[stuck];
  const auto most = std::max_element(share.rbegin(), share.rend());
  return *most == 0 ? nothing : static_cast<Sign>(share.rend() - most - 1);
}

Row row_of(const RankActivity& activity, const Axis& axis) {
  Row row;
  for (std::size_t i = 0; i < axis.columns; ++i) {
    row.push_back(sign_of(activity, axis.column(i)));
  }
  return row;
}

struct ChartRow {
  RankSet ranks;
  Row signs;
  bool is_culprit = false;
};

std::vector<ChartRow> rows_of(const Report& report, const TraceOptions& options, const Axis& axis) {
  const Finding* finding = finding_of(report.verdict);
  const std::vector<RankActivity> activities = activities_of(report, axis.until);
  std::vector<ChartRow> rows;
  std::map<std::pair<bool, Row>, std::size_t> known;  // index of rows
  for (Rank rank = 0; rank < report.world_size; ++rank) {
    if (options.ranks && !options.ranks->contains(rank)) {
      continue;
    }
    const bool is_culprit = finding != nullptr && finding->culprits.contains(rank);
    Row signs = row_of(activities[static_cast<std::size_t>(rank)], axis);
    const auto [entry, is_new] = known.try_emplace({is_culprit, signs}, rows.size());
    if (is_new) {
      rows.push_back({{}, std::move(signs), is_culprit});
    }
    rows[entry->second].ranks.insert(rank);
  }
  return rows;
}

std::string row_label(const RankSet& ranks) {
  constexpr std::size_t widest = 16;
  const std::string text = (ranks.size() == 1 ? "rank " : "ranks ") + to_string(ranks);
  return text.size() <= widest ? text : fmt::format("{} ranks", ranks.size());
}

Look look_of(Sign sign, bool is_culprit) {
  if (is_culprit) {
    return Look::error;
  }
  return sign == compute ? Look::good : sign == waiting || sign == stuck ? Look::faint : Look::plain;
}

class Chart {
 public:
  Chart(const Report& report, const TraceOptions& options, const ChartStyle& style)
      : style_(style), axis_(axis_of(report, options, style)), rows_(rows_of(report, options, axis_)) {
    for (const ChartRow& row : rows_) {
      label_width_ = std::max(label_width_, row_label(row.ranks).size());
    }
  }

  std::string draw() {
    std::string text = scale();
    for (const std::size_t index : shown()) {
      text += line(rows_[index]);
    }
    if (rows_.size() > style_.rows_max) {
      text += fmt::format("{:>{}}  and {} more rows; choose with --trace-ranks\n", "", label_width_,
                          rows_.size() - style_.rows_max);
    }
    return text + legend();
  }

 private:
  // A hang begins when the run ends; a few extra columns make it visible.
  Axis axis_of(const Report& report, const TraceOptions& options, const ChartStyle& style) {
    constexpr int parts = 8;
    until_ = std::min(options.until, report.simulated_time);
    const Time from = std::min(options.from, until_);
    const bool hangs =
        std::ranges::any_of(report.timeline.spans(), [](const Span& span) { return span.end == Span::open; });
    has_more_ = hangs && until_ == report.simulated_time;
    return {from, has_more_ ? until_ + (until_ - from) / parts + 1 : until_, style.columns};
  }

  // The first rows, with culprits preferred; in rank order.
  std::vector<std::size_t> shown() const {
    std::vector<std::size_t> indexes;
    for (const bool culprits : {true, false}) {
      for (std::size_t i = 0; i < rows_.size() && indexes.size() < style_.rows_max; ++i) {
        if (rows_[i].is_culprit == culprits) {
          indexes.push_back(i);
        }
      }
    }
    std::ranges::sort(indexes);
    return indexes;
  }

  static std::string milliseconds(Time time) { return in_milliseconds(time) + " ms"; }

  std::string scale() const {
    const std::string left = milliseconds(axis_.from);
    const std::string right = milliseconds(until_) + (has_more_ ? ", then forever" : "");
    const std::size_t used = left.size() + right.size();
    const std::size_t gap = style_.columns > used ? style_.columns - used : 1;
    return fmt::format("{:>{}}  {}{:>{}}{}\n", "", label_width_, left, "", gap, right);
  }

  std::string line(const ChartRow& row) {
    const auto& signs = style_.ascii ? ascii_signs : unicode_signs;
    std::string text = fmt::format("{:<{}}  ", row_label(row.ranks), label_width_);
    for (std::size_t i = 0; i < row.signs.size();) {
      std::string run;
      const Sign sign = row.signs[i];
      used_[sign] = true;
      for (; i < row.signs.size() && row.signs[i] == sign; ++i) {
        run += signs[sign];
      }
      text += paint(run, look_of(sign, row.is_culprit), style_.color);
    }
    if (row.is_culprit) {
      text += paint(style_.ascii ? "  < culprit" : "  ◀ culprit", Look::error, style_.color);
    }
    return text + "\n";
  }

  // Only the signs that were drawn.
  std::string legend() const {
    const auto& signs = style_.ascii ? ascii_signs : unicode_signs;
    std::string text;
    for (std::size_t sign = compute; sign < sign_count; ++sign) {
      if (used_[sign]) {
        text += fmt::format("{}{} {}", text.empty() ? "" : "   ", signs[sign], meanings[sign]);
      }
    }
    return text.empty() ? std::string() : fmt::format("{:>{}}  {}\n", "", label_width_, text);
  }

  ChartStyle style_;
  Time until_ = 0;
  bool has_more_ = false;  // time continues after `until_`
  Axis axis_;
  std::vector<ChartRow> rows_;
  std::size_t label_width_ = 0;
  std::array<bool, sign_count> used_{};
};

}  // namespace

std::string timeline_chart(const Report& report, const TraceOptions& options, const ChartStyle& style) {
  return Chart(report, options, style).draw();
}

}  // namespace rollcall::viz
