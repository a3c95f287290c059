#pragma once

// Unlikely reports, for the writers: every field is taken from bytes. They keep only the promises of report.h: ranks
// exist, names are interned, calls end after they begin, and lists are sorted.

#include <string_view>

#include "sim/report/report.h"

namespace rollcall::fuzz {

// Returns a report of 1 to 8 ranks. Any bytes are valid; once they are used up, the other fields are zeros and empty
// texts.
Report made_up_report(std::string_view bytes);

}  // namespace rollcall::fuzz
