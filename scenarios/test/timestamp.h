#pragma once

// When a run of tests began: the one place in scenarios that reads a clock. No verdict depends on it.

#include <string>

namespace rollcall::scenario {

// "2026-11-21T06:10:00" (UTC). SOURCE_DATE_EPOCH, where it is set, stands for now: then reports of equal runs
// are equal.
std::string timestamp();
bool has_fixed_date();

}  // namespace rollcall::scenario
