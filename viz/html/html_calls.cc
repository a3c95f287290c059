#include "viz/html/html_calls.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "viz/html/html_parts.h"
#include "viz/html/html_table.h"
#include "viz/rows/call_sequences.h"
#include "viz/rows/phrases.h"
#include "viz/rows/shadow_pairs.h"
#include "viz/rows/state_rows.h"

namespace rollcall::viz {

namespace {

using Cell = HtmlTable::Cell;

constexpr std::size_t ending_states_max = 100;

// A mark is not only a color: a difference has a sign, and a call that never returned says so in words. `ending`: the
// final state of ranks that make no more calls.
// `is_wrong`: a difference is a fault, and not that of an innocent rank.
Cell call_cell(const CallSequences::Cell& cell, const std::string& ending, bool is_wrong = true) {
  const bool differs = cell.differs;
  const bool is_nothing = cell.call.empty();
  std::string note = is_nothing ? (differs ? ending : "") : cell.origin.substr(cell.origin.empty() ? 0 : 1);
  note += cell.never_returned ? (note.empty() ? "never returned" : "; never returned") : "";
  return {.text = (differs ? "\u2260 " : "") + (is_nothing ? (differs ? "nothing" : "") : cell.call),
          .note = std::move(note),
          .look = differs && is_wrong   ? "differs"
                  : cell.never_returned ? "open"
                                        : ""};
}

Cell number_cell(std::string number, bool is_first_difference) {
  return {.text = std::move(number),
          .note = is_first_difference ? "first difference" : "",
          .look = is_first_difference ? "first" : "",
          .is_heading = true};
}

}  // namespace

bool html_shadows(Markup& out, const Report& report) {
  const std::optional<ShadowPairs> pairs = shadow_pairs(report);
  if (!pairs) {
    return false;
  }
  html_heading(out, "Forward and its shadow");
  out.element("p", fmt::format("Rank {} has run out of inputs, and its join hooks make the calls that rank "
                               "{} makes in its iterations. On {}, calls with the same number meet.",
                               pairs->joined, pairs->active, pairs->group))
      .line();
  HtmlTable table{.titles = {"", fmt::format("forward, rank {}", pairs->active),
                             fmt::format("shadow, rank {}", pairs->joined)},
                  .rows = {}};
  for (std::size_t i = 0; i < pairs->rows.size(); ++i) {
    const ShadowPairs::Row& row = pairs->rows[i];
    table.rows.push_back({number_cell(fmt::format("#{}", row.seq), pairs->first_difference == i),
                          call_cell(row.forward, ""), call_cell(row.shadow, "")});
  }
  write_table(out, table, "sequences");
  return pairs->first_difference.has_value();
}

namespace {

// The final state of the ranks, if it is the same for all. Empty for waiting ranks, whose state their call shows.
std::string ending_of(const Report& report, const RankSet& ranks) {
  std::string ending;
  for (const RankState& state : rank_states(report, {}, ending_states_max)) {
    if (state.ranks.ranks.contains(ranks) && state.ranks.state != RankClass::State::waiting) {
      ending = state_phrase(state.ranks, inputs_phrase(state.fewest_inputs, state.inputs_max));
    }
  }
  return ending;
}

HtmlTable sequences_table(const Report& report, const CallSequences& sequences, const RankNames& name) {
  HtmlTable table{.titles = {""}, .rows = {}};
  std::vector<std::string> endings;
  for (const CallSequences::Column& column : sequences.columns) {
    table.titles.push_back((column.is_culprit ? std::string(culprit_sign) : "") + name(column.ranks));
    endings.push_back(ending_of(report, column.ranks));
  }
  const auto calls_again = [&](const CallSequences::Column& column, std::size_t row) {
    return sequences.later > 0 ||
           std::any_of(column.cells.begin() + static_cast<std::ptrdiff_t>(row), column.cells.end(),
                       [](const CallSequences::Cell& cell) { return !cell.call.empty(); });
  };
  const bool has_culprits = std::ranges::any_of(sequences.columns, &CallSequences::Column::is_culprit);
  for (std::size_t row = 0; row < sequences.rows; ++row) {
    std::vector<Cell> cells = {number_cell("", sequences.first_difference == row)};
    for (std::size_t i = 0; i < sequences.columns.size(); ++i) {
      const CallSequences::Column& column = sequences.columns[i];
      cells.push_back(call_cell(column.cells[row], calls_again(column, row) ? "" : endings[i],
                                column.is_culprit || !has_culprits));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

void html_sequences(Markup& out, const Report& report, const RankNames& name) {
  if (finding_of(report.verdict) == nullptr) {
    return;
  }
  const CallSequences sequences = call_sequences(report);
  if (sequences.rows == 0 || sequences.columns.size() < 2) {
    return;
  }
  html_heading(out, "Calls side by side");
  if (sequences.earlier > 0) {
    const std::string calls = count_phrase(static_cast<std::int64_t>(sequences.earlier), "call");
    out.element("p", fmt::format("The first {} {} the same on all these ranks.", calls,
                                 sequences.earlier == 1 ? "was" : "were"));
  }
  write_table(out, sequences_table(report, sequences, name), "sequences");
  html_counted(out, sequences.later, "row");
  html_counted(out, sequences.columns_left_out, "other sequence");
}

}  // namespace rollcall::viz
