#include "viz/traces/trace_plan.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/c10d/backend_traits.h"
#include "viz/rows/phrases.h"

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

// An arrow is drawn if both its ends are.
std::vector<TraceArrow> chosen_arrows(const Report& report, const TraceOptions& options) {
  const std::vector<Span>& spans = report.timeline.spans();
  std::vector<TraceArrow> arrows = waiting_arrows(report.timeline);
  arrows.insert(arrows.end(), options.arrows.begin(), options.arrows.end());
  std::ranges::stable_sort(arrows, {}, &TraceArrow::time);
  std::erase_if(arrows, [&](TraceArrow& arrow) {
    std::erase_if(arrow.to, [&](std::uint32_t index) { return !is_chosen(spans[index], options); });
    return arrow.to.empty() || !is_chosen(spans[arrow.from], options);
  });
  return arrows;
}

// Truncated to microseconds, an arrow may end up on a slice's edge: it moves to the next microsecond inside, and is
// removed if there is none.
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

// When each rank's last span ends.
std::vector<Time> last_ends(const Report& report) {
  std::vector<Time> ends(static_cast<std::size_t>(report.world_size), 0);
  for (const Span& span : report.timeline.spans()) {
    Time& end = ends[static_cast<std::size_t>(span.rank)];
    end = std::max({end, span.start, span.end});
  }
  return ends;
}

}  // namespace

TracedReport::TracedReport(const Report& report, const TraceOptions& options)
    : report_(report), options_(options) {
  const Finding* finding = finding_of(report.verdict);
  const std::vector<Span>& spans = report.timeline.spans();
  if (finding == nullptr || report.measured || !options.arrows.empty()) {
    return;  // recordings have their own arrows
  }
  const std::vector<Time> ends = last_ends(report);
  Time end = report.simulated_time;
  for (const Span& span : spans) {
    end = std::max({end, span.start, span.end});
  }
  end += std::max<Time>(end / 20, microsecond);         // so that waiting slices have some length
  std::vector<std::pair<RankSet, std::uint32_t>> gone;  // the rank of each slice
  for (const RankClass& ranks : report.ranks) {
    if (ranks.state == RankClass::State::waiting) {
      continue;
    }
    for (const Rank rank : ranks.ranks.to_vector()) {
      if (!finding->culprits.contains(rank)) {
        continue;
      }
      if (!copy_) {
        copy_ = report;
        options_.notes_from = spans.size();
      }
      gone.emplace_back(RankSet{rank}, static_cast<std::uint32_t>(copy_->timeline.spans().size()));
      copy_->timeline.add({.start = ends[static_cast<std::size_t>(rank)],
                           .end = end,
                           .rank = rank,
                           .kind = Span::Kind::host,
                           .name = copy_->timeline.intern(
                               folded_text(state_phrase(ranks, inputs_phrase(ranks.inputs, ranks.inputs))))});
    }
  }
  for (std::uint32_t i = 0; copy_ && i < spans.size(); ++i) {
    if (spans[i].end != Span::open) {
      continue;
    }
    TraceArrow arrow{spans[i].start + 1, i, {}, true};
    const RankSet& missed = report.of(spans[i].rank).waits_for;
    for (const auto& [ranks, slice] : gone) {
      if (missed.contains(ranks.first())) {
        arrow.to.push_back(slice);
        arrow.time = std::max(arrow.time, copy_->timeline.spans()[slice].start + 1);
      }
    }
    if (!arrow.to.empty()) {
      options_.arrows.push_back(std::move(arrow));
    }
  }
}

std::string verdict_mark(const Report& report) {
  return fmt::format("verdict: {}", verdict_word(report.verdict));
}

TracePlan plan_trace(const Report& report, const TraceOptions& options) {
  TracePlan plan;
  plan.ranks = chosen_ranks(report, options);
  plan.arrows = chosen_arrows(report, options);
  if (options.whole_microseconds) {
    move_to_microseconds(report.timeline.spans(), plan.arrows);
  }
  plan.lanes = assign_lanes(report.timeline, report.world_size, !traits_of(report.backend).queues_calls,
                            chosen_spans(report.timeline.spans(), options));
  std::erase_if(plan.lanes.lanes, [&options](const TraceLanes::Lane& lane) {
    return options.ranks && !options.ranks->contains(lane.rank);
  });
  plan.end = report.simulated_time;
  for (const std::uint32_t index : plan.lanes.order) {
    const Span& span = report.timeline.spans()[index];
    plan.end = std::max({plan.end, span.start, span.end});
  }
  return plan;
}

}  // namespace rollcall::viz
