#pragma once

// What `record` and `predict` do with a script.

#include "scenarios/cli/cli.h"
#include "scenarios/record/recorded_script.h"
#include "scenarios/record/script_run.h"

namespace rollcall::cli {

// Runs the script of line.paths: alone, unless it decides by what it receives; then its ranks together. Throws
// UsageError, NoTorch and std::filesystem errors.
scenario::ScriptRun run_recorded(const CommandLine& line, bool timeline);

void say_no_torch(const scenario::NoTorch& missing);
void say_problems(const scenario::ScriptRun& run, const scenario::RecordedScript& recorded);
// Where ranks were when they were stopped; who was at the same place once.
void say_stacks(const traces::ScriptRecord& record);

}  // namespace rollcall::cli
