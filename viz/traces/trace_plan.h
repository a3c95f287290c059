#pragma once

// What goes into a trace, before any format: which spans, in which rows, and the arrows between them.
// All writers of traces work from this.

#include <limits>
#include <optional>
#include <string>

#include "sim/report/report.h"
#include "viz/traces/trace_arrows.h"
#include "viz/traces/trace_lanes.h"

namespace rollcall::viz {

struct TraceOptions {
  std::optional<RankSet> ranks{};  // none: all
  // Spans that reach into this time are drawn, whole.
  Time from = 0;
  Time until = std::numeric_limits<Time>::max();
  // Every time cut to whole microseconds, for readers that round fractions outwards (HTA does).
  bool whole_microseconds = false;
  // Beside those that the spans themselves tell of: to calls that never returned, from what was never called.
  std::vector<TraceArrow> arrows{};
  // Spans from this index on are no calls, but say what became of a culprit.
  std::size_t notes_from = std::numeric_limits<std::size_t>::max();
};

// "verdict: deadlock", at the end of every call that did not return.
std::string verdict_mark(const Report& report);

// A report as traces show it: with slices of what culprits did instead of the calls that others wait for ("finished
// after 5 inputs"), and arrows to them. It refers to the report, and to the copy that it makes where there are any.
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
  TraceLanes lanes;                // of the chosen spans; lanes.order has their indexes
  std::vector<TraceArrow> arrows;  // between chosen spans
  std::vector<Rank> ranks;         // that are drawn, ascending
  Time end = 0;                    // the last thing that happens
};

// The report is borrowed for the plan's lifetime.
TracePlan plan_trace(const Report& report, const TraceOptions& options);

}  // namespace rollcall::viz
