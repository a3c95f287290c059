#pragma once

// What the lines of a log say, alone and beside recordings.

#include <optional>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "sim/report/diagnosis.h"

namespace rollcall::check {

// Nothing where the lines blame nobody.
std::optional<Diagnosis> judge_log(const std::vector<LogFact>& facts);

// Adds the log's word to a diagnosis from recordings: it settles what they leave open, and otherwise agrees or
// contradicts as evidence. `has_moved`: the recordings show a job at work.
void add_log_evidence(const std::vector<LogFact>& facts, bool has_moved, Diagnosis& diagnosis);

// The watchdog ended a call: the job stood still.
bool log_shows_timeout(const std::vector<LogFact>& facts);

}  // namespace rollcall::check
