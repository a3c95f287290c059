#pragma once

// What launchers say of the processes that they started. torchrun leaves the error.json of each rank that raised, and
// the summary on its console, which names the rank whose failure was observed first
// (torch/distributed/elastic/multiprocessing/errors).

#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/logs/log_stream.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_error_file(const Value& value);
std::vector<check::LogFact> read_error_file(const Value& value, Rank rank);

// What srun, mpirun and Lightning say of the process that failed first.
bool looks_like_launcher_log(std::string_view bytes);
std::vector<check::LogFact> read_launcher_log(const LogStream& log);

bool looks_like_elastic_summary(std::string_view bytes);
std::vector<check::LogFact> read_elastic_summary(const LogStream& log);

}  // namespace rollcall::traces
