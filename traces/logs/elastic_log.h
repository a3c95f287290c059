#pragma once

// The files that torchrun leaves: the error.json of each rank that raised, and the summary on its console, which names
// the rank whose failure was observed first (torch/distributed/elastic/multiprocessing/errors).

#include <string>
#include <string_view>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "traces/values/value.h"

namespace rollcall::traces {

bool looks_like_error_file(const Value& value);
std::vector<check::LogFact> read_error_file(const Value& value, Rank rank, const std::string& file);

bool looks_like_elastic_summary(std::string_view bytes);
std::vector<check::LogFact> read_elastic_summary(std::string_view bytes, const std::string& file);

}  // namespace rollcall::traces
