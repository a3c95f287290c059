#pragma once

// The judge of recordings: the dumps of a job in, a diagnosis out. Pure, and independent of the order in
// which files were read. It asks the same questions as judge.h of less evidence, so the answer says
// how certain it is and what would settle the rest.

#include "sim/diagnose/dump.h"
#include "sim/report/diagnosis.h"

namespace rollcall::check {

// `job` has at least one rank, or a fact from its log.
Diagnosis judge_dump(const JobDump& job);

}  // namespace rollcall::check
