#pragma once

// Blame by repair, for recordings: the smallest change of the ranks' calls that explains why the job made no progress.

#include "sim/diagnose/dump_case.h"

namespace rollcall::check {

// Compares the culprits of `diagnosis` with the smallest change under which all recorded calls could have finished, and
// names the ranks that have to change. Leaves the diagnosis of jobs with missing records alone.
void mend(const DumpCase& job, Diagnosis& diagnosis);

}  // namespace rollcall::check
