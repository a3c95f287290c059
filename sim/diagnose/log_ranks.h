#pragma once

// What the logs and stacks of ranks say about each other: who raised, who was ended, who is silent where others report
// errors, whose list of calls ends early, whose program is elsewhere.

#include <optional>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "sim/report/diagnosis.h"

namespace rollcall::check {

RankSet ranks_with(const std::vector<LogFact>& facts, LogFact::Kind kind);

// With nothing yet of where and why.
Diagnosis diagnosis_of(FindingKind kind, Diagnosis::Confidence confidence, RankSet culprits);

// Ranks that gave up waiting in a call of their own: whoever waits for them waits for what they wait for.
RankSet waited_themselves(const std::vector<LogFact>& facts);

// Those whose last call, in a list of DETAIL, follows on another than ever before.
RankSet straying_ranks(const std::vector<LogFact>& facts);

// Each finds nothing where it has nothing to go by.
std::optional<Diagnosis> judge_errors(const std::vector<LogFact>& facts);
// What a supervisor saw of processes: killed, gone, stopped.
std::optional<Diagnosis> judge_ends(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_aborts(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_call_lists(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_silence(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_host_stacks(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_devices(const std::vector<LogFact>& facts);

}  // namespace rollcall::check
