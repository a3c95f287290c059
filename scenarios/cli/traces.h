#pragma once

// The timelines that `run` writes: --trace, --trace-dir, --timeline.

#include <string>

#include "scenarios/cli/cli.h"
#include "sim/report/report.h"
#include "viz/traces/trace_plan.h"

namespace rollcall::cli {

bool wants_timeline(const TraceArguments& arguments);

// A run's report, in the wanted format; as text it is followed by the chart if that is requested.
std::string output_of(const CommandLine& line, const Report& report, const viz::TraceOptions& options);

// The part that the arguments select, in a world of that size. Throws UsageError. Call it before anything
// runs.
viz::TraceOptions trace_options(const TraceArguments& arguments, Rank world_size);
// The same for a command that runs something. Throws UsageError also if the directory has files of a run with other
// ranks: readers would mix the two.
viz::TraceOptions checked_trace_options(const TraceArguments& arguments, Rank world_size);

// Writes the files, and says so on standard error unless `line` is quiet. Throws viz::OutputError.
void write_traces(const CommandLine& line, const Report& report, const viz::TraceOptions& options);

}  // namespace rollcall::cli
