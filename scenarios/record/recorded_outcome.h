#pragma once

// What a recorded run came to, held against what its scenario comes to: a scenario that says something else says
// nothing about the script.

#include <optional>
#include <string>

#include "sim/report/report.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// How the two differ, in one sentence without a full stop; nothing where they agree. `run`: the report of the recorded
// run, of all ranks in the simulator.
std::optional<std::string> contradiction(const traces::ScriptRecord& record, const Report& run,
                                         const Report& scenario);

// How long calls wait, in seconds, where the script goes on after one has waited for too long. Of other scripts a
// timeout is only how a hang ends.
std::optional<double> limit_of_waits(const traces::ScriptRecord& record);

// Ranks that trained without a word to each other: no scenario shows it, for there is nothing in it.
std::optional<Verdict> trained_apart(const traces::ScriptRecord& record);

// Such ranks that have the same parameters in the end, which is not a fault: one rank would have done. A sentence
// without a full stop.
std::optional<std::string> trained_alike(const traces::ScriptRecord& record);

}  // namespace rollcall::scenario
