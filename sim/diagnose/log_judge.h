#pragma once

// Judges the lines of a log, alone and together with recordings.

#include <optional>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "sim/report/diagnosis.h"

namespace rollcall::check {

// Null if the lines blame no rank.
std::optional<Diagnosis> judge_log(const std::vector<LogFact>& facts);

// Adds the log's evidence to a diagnosis from recordings: it settles what they leave open, and otherwise agrees or
// contradicts. `has_moved`: the recordings show a job at work.
void add_log_evidence(const std::vector<LogFact>& facts, bool has_moved, Diagnosis& diagnosis);

// True if the log reports calls that failed on some rank: the job is not well.
bool log_shows_failure(const std::vector<LogFact>& facts);

// True if the log reports a timeout: the job stood still.
bool log_shows_timeout(const std::vector<LogFact>& facts);

}  // namespace rollcall::check
