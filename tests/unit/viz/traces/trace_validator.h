#pragma once

// Holds a trace to the rules its readers have: what breaks one of them is dropped or drawn wrong without
// a word. One sentence per rule that is broken; none: the trace loads as it was meant.

#include <string>
#include <vector>

namespace rollcall::viz::test {

// Trace-event JSON, as Perfetto's importer takes it.
std::vector<std::string> chrome_trace_problems(const std::string& text);

// One rank's file, as Holistic Trace Analysis takes it; the rules above included.
std::vector<std::string> kineto_trace_problems(const std::string& text, int rank);

// Perfetto's protobuf.
std::vector<std::string> perfetto_trace_problems(const std::string& bytes);

}  // namespace rollcall::viz::test
