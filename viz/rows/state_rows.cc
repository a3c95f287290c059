#include "viz/rows/state_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "viz/rows/phrases.h"

namespace rollcall::viz {

namespace {

void fold_into(RankState& state, const RankState& other) {
  state.ranks.ranks.insert(other.ranks.ranks);
  state.fewest_inputs = std::min(state.fewest_inputs, other.fewest_inputs);
  state.inputs_max = std::max(state.inputs_max, other.inputs_max);
}

std::vector<RankState> states_of(const Report& report, const RankSet& skip) {
  const Finding* finding = finding_of(report.verdict);
  std::vector<RankState> states;
  const auto add = [&states](RankClass part, const RankSet& ranks, bool is_culprit) {
    if (!ranks.empty()) {
      part.ranks = ranks;
      states.push_back({part, part.inputs, part.inputs, is_culprit});
    }
  };
  for (const RankClass& ranks : report.ranks) {
    if (skip.contains(ranks.ranks)) {
      continue;
    }
    // Culprits get their own row, even if others are in the same state.
    const RankSet culprits = finding == nullptr ? RankSet() : finding->culprits;
    add(ranks, intersection(ranks.ranks, culprits), true);
    add(ranks, difference(ranks.ranks, culprits), false);
  }
  std::ranges::stable_sort(states, std::ranges::greater(), &RankState::is_culprit);
  return states;
}

// 1,000 ranks that took 5, 6, 7, ... inputs are 1,000 classes but one row.
std::vector<RankState> folded(const std::vector<RankState>& states) {
  std::map<std::string, std::size_t> indexes;  // into `result`, by the row's text
  std::vector<RankState> result;
  for (const RankState& state : states) {
    const std::string text = fmt::format("{}{}", state.is_culprit ? "!" : "", state_phrase(state.ranks, ""));
    const auto [entry, is_new] = indexes.try_emplace(text, result.size());
    if (is_new) {
      result.push_back(state);
    } else {
      fold_into(result[entry->second], state);
    }
  }
  return result;
}

// `is_brief`: shows only the beginning of a long exception.
Row row_of(RankState state, bool is_brief) {
  if (is_brief) {
    state.ranks.exception = folded_text(state.ranks.exception);
  }
  return {ranks_phrase(state.ranks.ranks),
          state_phrase(state.ranks, inputs_phrase(state.fewest_inputs, state.inputs_max)),
          state.is_culprit ? Look::error : Look::plain};
}

}  // namespace

Row more_row(std::size_t count, std::string_view noun) {
  return {"...", fmt::format("and {} more {}{} (-v shows all)", count, noun, count == 1 ? "" : "s"),
          Look::faint, Look::faint};
}

std::vector<RankState> rank_states(const Report& report, const RankSet& skip, std::size_t most) {
  std::vector<RankState> states = states_of(report, skip);
  return most > 0 && states.size() > most ? folded(states) : states;
}

std::vector<Row> state_rows(const Report& report, const RankSet& skip, std::size_t most) {
  const std::vector<RankState> states = rank_states(report, skip, most);
  const bool cut = most > 0 && states.size() > most;
  const std::size_t shown = cut ? most - 1 : states.size();
  std::vector<Row> rows;
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(row_of(states[i], most > 0));
  }
  if (cut) {
    rows.push_back(more_row(states.size() - shown, "state"));
  }
  return rows;
}

}  // namespace rollcall::viz
