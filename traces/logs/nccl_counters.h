#pragma once

// NCCL's own view of a job: RAS output as JSON (`ncclras -f json`, src/ras/client_support.cc), lines of
// NCCL_DEBUG_SUBSYS=COLL with an opCount (src/enqueue.cc), and the Inspector's JSON lines (plugins/profiler/inspector).
// Each says how many collectives a rank has launched or finished on a communicator.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/logs/log_stream.h"
#include "traces/values/value.h"

namespace rollcall::traces {

// The text of an `unreachable` fact about a rank that RAS does not consider dead yet.
inline constexpr const char* unresponsive = "unresponsive";

// NCCL 2.28.9 leaves out a comma for each rank that does not answer. Returns the text with it; null if none is missing.
std::optional<std::string> mended_ras_json(std::string_view bytes);
bool looks_like_ras_json(const Value& value);
std::vector<check::LogFact> read_ras_json(const Value& value);

bool looks_like_inspector(const Value& value);
std::vector<check::LogFact> read_inspector(const Value& value, Rank rank);

bool looks_like_nccl_calls(std::string_view bytes);
std::vector<check::LogFact> read_nccl_calls(const LogStream& log);

}  // namespace rollcall::traces
