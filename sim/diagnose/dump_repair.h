#pragma once

// Blame by repair, for recordings: the smallest change of what ranks called that explains why the job stood still.

#include "sim/diagnose/dump_case.h"

namespace rollcall::check {

// Holds the culprits of `diagnosis` against the smallest change under which all that is recorded could have finished,
// and names those who have to change. Jobs of which something is missing stay as they are judged.
void mend(const DumpCase& job, Diagnosis& diagnosis);

}  // namespace rollcall::check
