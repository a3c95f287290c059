#include "viz/trace_arrows.h"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

namespace rollcall::viz {

namespace {

using Indexes = std::span<const std::uint32_t>;

bool same_slot(const Span& a, const Span& b) { return a.group == b.group && a.seq == b.seq; }

// The collectives' spans, those of one slot side by side.
std::vector<std::uint32_t> by_slot(const std::vector<Span>& spans) {
  std::vector<std::uint32_t> indexes;
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    if (spans[i].kind == Span::Kind::collective) {
      indexes.push_back(i);
    }
  }
  std::sort(indexes.begin(), indexes.end(), [&spans](std::uint32_t a, std::uint32_t b) {
    const auto key = [&spans](std::uint32_t i) {
      return std::tuple(spans[i].group, spans[i].seq, spans[i].rank, i);
    };
    return key(a) < key(b);
  });
  return indexes;
}

// An arrow that touches the very end of a slice would bind to whatever starts there, so it is drawn
// a nanosecond after the last arrival; slices too short for that get none.
std::optional<TraceArrow> arrow_of(const std::vector<Span>& spans, Indexes slot) {
  const auto last = *std::max_element(slot.begin(), slot.end(), [&spans](std::uint32_t a, std::uint32_t b) {
    return spans[a].start < spans[b].start;
  });
  TraceArrow arrow{spans[last].start + 1, last, {}};
  if (spans[last].end <= arrow.time) {
    return std::nullopt;
  }
  for (const std::uint32_t index : slot) {
    const Span& span = spans[index];
    if (span.end == Span::open) {
      return std::nullopt;
    }
    if (span.start < spans[last].start && span.end > arrow.time) {
      arrow.to.push_back(index);
    }
  }
  return arrow.to.empty() ? std::nullopt : std::optional(std::move(arrow));
}

}  // namespace

std::vector<TraceArrow> waiting_arrows(const Timeline& timeline) {
  const std::vector<Span>& spans = timeline.spans();
  const std::vector<std::uint32_t> indexes = by_slot(spans);
  std::vector<TraceArrow> arrows;
  for (auto begin = indexes.begin(); begin != indexes.end();) {
    const auto end = std::find_if(begin, indexes.end(),
                                  [&](std::uint32_t i) { return !same_slot(spans[i], spans[*begin]); });
    if (auto arrow = arrow_of(spans, Indexes(begin, end))) {
      arrows.push_back(std::move(*arrow));
    }
    begin = end;
  }
  std::stable_sort(arrows.begin(), arrows.end(),
                   [](const TraceArrow& a, const TraceArrow& b) { return a.time < b.time; });
  return arrows;
}

}  // namespace rollcall::viz
