#pragma once

// Timelines in Chrome's trace-event JSON, gzipped or not: rollcall's own (--trace, --trace-dir), and Kineto's as
// torch.profiler writes them (libkineto/src/output_json.cpp), one file per rank.
//
// Kept: computation and communication as spans, with operation, group, number, data, and times; calls that never
// returned (B without E). Ignored: host operators, memory copies, counters, flows. A file without a rank in
// "distributedInfo" holds all ranks, one process each. A trace has no verdict, so the report that is read has none.

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::traces {

// The message names the file and what is wrong with it.
struct InvalidTrace : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the first bytes of a file, unpacked; empty if it cannot be read or is not a regular file.
std::string beginning_of(const std::string& path);
// Decides by the file's first bytes.
bool looks_like_trace(const std::string& path);

// Reads one trace: a file of all ranks, or files of one rank each; a folder stands for the traces in it. Throws
// InvalidTrace.
Report read_trace(const std::vector<std::string>& paths);

}  // namespace rollcall::traces
