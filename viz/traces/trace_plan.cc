#include "viz/traces/trace_plan.h"

#include <algorithm>

#include "sim/c10d/backend_traits.h"

namespace rollcall::viz {

namespace {

std::vector<Rank> chosen_ranks(const Report& report, const TraceOptions& options) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < report.world_size; ++rank) {
    if (!options.ranks || options.ranks->contains(rank)) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

bool is_chosen(const Span& span, const TraceOptions& options) {
  const bool reaches_in = span.start <= options.until && (span.end == Span::open || span.end >= options.from);
  return reaches_in && (!options.ranks || options.ranks->contains(span.rank));
}

std::vector<std::uint32_t> chosen_spans(const std::vector<Span>& spans, const TraceOptions& options) {
  std::vector<std::uint32_t> indexes;
  indexes.reserve(spans.size());
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    if (is_chosen(spans[i], options)) {
      indexes.push_back(i);
    }
  }
  return indexes;
}

// An arrow is drawn when both its ends are.
std::vector<TraceArrow> chosen_arrows(const Report& report, const TraceOptions& options) {
  const std::vector<Span>& spans = report.timeline.spans();
  std::vector<TraceArrow> arrows = waiting_arrows(report.timeline);
  arrows.insert(arrows.end(), options.arrows.begin(), options.arrows.end());
  std::stable_sort(arrows.begin(), arrows.end(),
                   [](const TraceArrow& a, const TraceArrow& b) { return a.time < b.time; });
  std::erase_if(arrows, [&](TraceArrow& arrow) {
    std::erase_if(arrow.to, [&](std::uint32_t index) { return !is_chosen(spans[index], options); });
    return arrow.to.empty() || !is_chosen(spans[arrow.from], options);
  });
  return arrows;
}

// Cut to microseconds, an arrow may come to lie on a slice's edge: it moves to the next one inside, and
// where there is none it goes.
void move_to_microseconds(const std::vector<Span>& spans, std::vector<TraceArrow>& arrows) {
  std::erase_if(arrows, [&spans](TraceArrow& arrow) {
    arrow.time = (arrow.time / microsecond + 1) * microsecond;
    const auto is_outside = [&](std::uint32_t index) {
      const Time end = spans[index].end;
      return end != Span::open && end / microsecond * microsecond <= arrow.time;
    };
    std::erase_if(arrow.to, is_outside);
    return arrow.to.empty() || is_outside(arrow.from);
  });
}

}  // namespace

TracePlan plan_trace(const Report& report, const TraceOptions& options) {
  TracePlan plan;
  plan.ranks = chosen_ranks(report, options);
  plan.arrows = chosen_arrows(report, options);
  if (options.whole_microseconds) {
    move_to_microseconds(report.timeline.spans(), plan.arrows);
  }
  plan.lanes = assign_lanes(report.timeline, report.world_size, !traits_of(report.backend).queues_calls,
                            chosen_spans(report.timeline.spans(), options));
  plan.end = report.simulated_time;
  for (const std::uint32_t index : plan.lanes.order) {
    const Span& span = report.timeline.spans()[index];
    plan.end = std::max({plan.end, span.start, span.end});
  }
  return plan;
}

}  // namespace rollcall::viz
