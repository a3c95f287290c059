#pragma once

// The content of a trace, independent of its format: the spans, their rows, and the arrows between them.
// All writers of traces use it.

#include <limits>
#include <optional>
#include <string>

#include "sim/report/report.h"
#include "viz/traces/trace_arrows.h"
#include "viz/traces/trace_lanes.h"

namespace rollcall::viz {

struct TraceOptions {
  std::optional<RankSet> ranks{};  // none: all
  // Spans that overlap this time range are drawn, in full.
  Time from = 0;
  Time until = std::numeric_limits<Time>::max();
  // Truncates every time to whole microseconds, for readers that round fractions outward (as HTA does).
  bool whole_microseconds = false;
  // Arrows in addition to those of the spans themselves: from calls that never returned to what was never called.
  std::vector<TraceArrow> arrows{};
  // Spans from this index on are not calls, but say how a culprit ended.
  std::size_t notes_from = std::numeric_limits<std::size_t>::max();
};

// "verdict: deadlock", at the end of every call that did not return.
std::string verdict_mark(const Report& report);

// A report as traces show it: with slices that say what culprits did instead of the calls that others wait for
// ("finished after 5 inputs"), and arrows to them. Refers to the report, or to its copy with these slices if there are
// any.
class TracedReport {
 public:
  TracedReport(const Report& report, const TraceOptions& options);
  TracedReport(const TracedReport&) = delete;
  TracedReport& operator=(const TracedReport&) = delete;

  const Report& report() const { return copy_ ? *copy_ : report_; }
  const TraceOptions& options() const { return options_; }

 private:
  const Report& report_;
  std::optional<Report> copy_;
  TraceOptions options_;
};

struct TracePlan {
  TraceLanes lanes;                // of the chosen ranks and spans; lanes.order has the spans' indexes
  std::vector<TraceArrow> arrows;  // between chosen spans
  std::vector<Rank> ranks;         // the ranks that are drawn, ascending
  Time end = 0;                    // the time of the last event
};

// The report is borrowed for the plan's lifetime.
TracePlan plan_trace(const Report& report, const TraceOptions& options);

}  // namespace rollcall::viz
