#pragma once

// Converts Flight Recorder dumps to a scenario that runs: so a hang that happened once becomes a test for CI.

#include <string>

#include "sim/diagnose/dump.h"
#include "sim/report/diagnosis.h"

namespace rollcall::scenario {

struct ImportedJob {
  std::string text;    // the scenario; `expect` has the outcome of its run. Empty if there is none
  std::string remark;  // if that differs from the dumps' diagnosis, or why there is none; may be empty
};

// `diagnosis` is that of `job`, which has at least one rank.
ImportedJob import_dumps(const check::JobDump& job, const Diagnosis& diagnosis);

}  // namespace rollcall::scenario
