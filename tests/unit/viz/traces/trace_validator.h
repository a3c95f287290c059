#pragma once

// Checks a trace against the rules of its readers, which silently drop or misdraw anything that breaks a rule. Returns
// one sentence per broken rule; none if the trace loads as intended.

#include <string>
#include <vector>

namespace rollcall::viz::test {

// Trace-event JSON, as Perfetto's importer reads it.
std::vector<std::string> chrome_trace_problems(const std::string& text);

// One rank's file, as Holistic Trace Analysis reads it; this includes the rules above.
std::vector<std::string> kineto_trace_problems(const std::string& text, int rank);

// Perfetto's protobuf.
std::vector<std::string> perfetto_trace_problems(const std::string& bytes);

}  // namespace rollcall::viz::test
