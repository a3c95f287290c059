#pragma once

// The time at which a run of tests began. No verdict depends on it.

#include <string>

namespace rollcall::scenario {

// "2026-11-21T06:10:00" (UTC). SOURCE_DATE_EPOCH, if set, replaces the current time: then reports of equal
// runs are equal.
std::string timestamp();
bool has_fixed_date();

}  // namespace rollcall::scenario
