#pragma once

// One rank's timeline in the form of torch.profiler's files (libkineto/src/output_json.cpp), one file
// per rank, as Holistic Trace Analysis reads them: kernels on streams, and the host's training steps. The
// host's work inside a step while the GPU computes is not in a timeline, and HTA analyzes kernels.

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "sim/report/report.h"
#include "viz/traces/trace_groups.h"
#include "viz/traces/trace_plan.h"

namespace rollcall::viz {

// Writes the files of one report; their common parts are computed once.
class KinetoTraces {
 public:
  // The report is borrowed, and needs a timeline.
  KinetoTraces(const Report& report, const TraceOptions& options);

  const std::vector<Rank>& ranks() const { return plan_.ranks; }  // the ranks that have a file
  // "rank3.json"
  static std::string file_name(Rank rank);
  void write(Rank rank, std::ostream& out) const;

 private:
  const Report& report_;
  TraceOptions options_;
  TracePlan plan_;
  std::vector<TraceGroup> groups_;
  std::map<Rank, std::vector<std::uint32_t>> spans_;  // of each rank, by start
  std::map<Rank, std::vector<StepMark>> steps_;       // likewise
};

}  // namespace rollcall::viz
