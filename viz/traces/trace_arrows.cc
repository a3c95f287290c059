#include "viz/traces/trace_arrows.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <tuple>

namespace rollcall::viz {

namespace {

using Indexes = std::span<const std::uint32_t>;

bool same_slot(const Span& a, const Span& b) { return a.group == b.group && a.seq == b.seq; }

// The collectives' spans, with those of one slot next to each other.
std::vector<std::uint32_t> by_slot(const std::vector<Span>& spans) {
  std::vector<std::uint32_t> indexes;
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    if (spans[i].kind == Span::Kind::collective) {
      indexes.push_back(i);
    }
  }
  std::ranges::sort(indexes, {}, [&spans](std::uint32_t i) {
    return std::tuple(spans[i].group, spans[i].seq, spans[i].rank, i);
  });
  return indexes;
}

// An arrow that touches the very end of a slice would attach to whatever starts there, so it is drawn
// a nanosecond after the last arrival; slices too short for that get no arrow.
std::optional<TraceArrow> arrow_of(const std::vector<Span>& spans, Indexes slot) {
  const std::uint32_t last =
      *std::ranges::max_element(slot, {}, [&spans](std::uint32_t i) { return spans[i].start; });
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

// A completed message's span with its sorting key: the group and the two ends, sender first.
struct MessageEnd {
  std::uint32_t group;
  Rank sender;
  Rank receiver;
  bool receives;
  std::uint32_t index;

  friend auto operator<=>(const MessageEnd&, const MessageEnd&) = default;
  bool belongs_to(const MessageEnd& other) const {
    return group == other.group && sender == other.sender && receiver == other.receiver;
  }
};

std::vector<MessageEnd> message_ends(const Timeline& timeline) {
  std::vector<MessageEnd> ends;
  for (std::uint32_t i = 0; i < timeline.spans().size(); ++i) {
    const Span& span = timeline.spans()[i];
    if (span.kind == Span::Kind::message && span.end != Span::open) {
      const bool sends = timeline.name(span.name) == "send";
      ends.push_back({span.group, sends ? span.rank : span.peer, sends ? span.peer : span.rank, !sends, i});
    }
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

// Both ends of a message are recorded when it completes, so the k-th send between two ranks belongs to the
// k-th receive.
std::vector<TraceArrow> message_arrows(const Timeline& timeline) {
  const std::vector<Span>& spans = timeline.spans();
  const std::vector<MessageEnd> ends = message_ends(timeline);
  std::vector<TraceArrow> arrows;
  for (auto begin = ends.begin(); begin != ends.end();) {
    const auto end =
        std::find_if(begin, ends.end(), [&](const MessageEnd& each) { return !each.belongs_to(*begin); });
    const auto middle = std::find_if(begin, end, [](const MessageEnd& each) { return each.receives; });
    for (auto send = begin, receive = middle; send != middle && receive != end; ++send, ++receive) {
      auto arrow = arrow_of(spans, std::array{send->index, receive->index});
      if (arrow && spans[send->index].end == spans[receive->index].end) {
        arrows.push_back(std::move(*arrow));
      }
    }
    begin = end;
  }
  return arrows;
}

}  // namespace

std::vector<TraceArrow> waiting_arrows(const Timeline& timeline) {
  const std::vector<Span>& spans = timeline.spans();
  const std::vector<std::uint32_t> indexes = by_slot(spans);
  std::vector<TraceArrow> arrows = message_arrows(timeline);
  for (auto begin = indexes.begin(); begin != indexes.end();) {
    const auto end = std::find_if(begin, indexes.end(),
                                  [&](std::uint32_t i) { return !same_slot(spans[i], spans[*begin]); });
    if (auto arrow = arrow_of(spans, Indexes(begin, end))) {
      arrows.push_back(std::move(*arrow));
    }
    begin = end;
  }
  std::ranges::stable_sort(arrows, {}, &TraceArrow::time);
  return arrows;
}

}  // namespace rollcall::viz
