#pragma once

// Compares the outcome of a recorded run with that of its scenario: a scenario with a different outcome says nothing
// about the script.

#include <optional>
#include <string>

#include "sim/report/report.h"
#include "traces/formats/script_record.h"

namespace rollcall::scenario {

// How the two differ, in one sentence without a period; nothing if they agree. `run`: the report of the recorded run,
// of all ranks in the simulator.
std::optional<std::string> contradiction(const traces::ScriptRecord& record, const Report& run,
                                         const Report& scenario);

// How long calls wait, in seconds, if the script continues after one has waited for too long. For other scripts, a
// timeout is only how a hang ends.
std::optional<double> limit_of_waits(const traces::ScriptRecord& record);

// Where threads of a rank share a group, chance decides which of their calls come first. If such calls met calls of
// other threads, says so and blames none of the ranks.
void blame_threads(const traces::ScriptRecord& record, Verdict& verdict);

// A rank that makes a call because it handles an exception, in a finally block for instance, stands where ranks without
// one are not. If that is what ranks in a standstill differ in, blames those that do, and names the exception.
void blame_exceptions(const traces::ScriptRecord& record, Report& report);

// Finds ranks that trained without communicating, and replicas of DDP that differ at the end. No scenario shows this.
std::optional<Verdict> trained_apart(const traces::ScriptRecord& record);

// Finds such ranks whose models were different ones from the beginning, which may be meant. A sentence without a
// period; empty if there are none.
std::string trained_on_their_own(const traces::ScriptRecord& record);

// Finds such ranks that have the same parameters in the end, which is not an error: one rank would have been enough.
// Likewise.
std::string trained_alike(const traces::ScriptRecord& record);

}  // namespace rollcall::scenario
