#pragma once

// Reports as nobody would make them up, for the writers: every field is taken from bytes. Only what report.h promises
// is kept: ranks exist, names are interned, calls end after they begin, lists are in their order.

#include <string_view>

#include "sim/report/report.h"

namespace rollcall::fuzz {

// Of 1 to 8 ranks. Any bytes will do; when they are used up, the rest is zeros and empty texts.
Report made_up_report(std::string_view bytes);

}  // namespace rollcall::fuzz
