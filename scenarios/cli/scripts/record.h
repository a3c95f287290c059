#pragma once

// Shared by `record` and `predict` for scripts.

#include "scenarios/cli/cli.h"
#include "scenarios/record/recorded_script.h"
#include "scenarios/record/script_run.h"

namespace rollcall::cli {

// Runs the script of line.paths: each rank alone or, if the script decides by received data, all ranks together. Throws
// UsageError and NoTorch.
scenario::ScriptRun run_recorded(const CommandLine& line, bool timeline);

void say_problems(const scenario::ScriptRun& run, const scenario::RecordedScript& recorded);
// Says where ranks were when they were stopped; ranks at the same place share one line.
void say_stacks(const traces::ScriptRecord& record);

}  // namespace rollcall::cli
