#pragma once

// A report for a program: one JSON object with fixed names and a fixed order.
//
//   { "schema_version": 1, "scenario": "...", "verdict": "deadlock", "kind": "missing_participant",
//     "culprits": [0], "at": { "op": "all_reduce", "group": "world", "seq": 5, "waiting": [1, 2, 3], ... },
//     ... }
//
// report_format.h has all names. They are an interface: users' scripts read them. Parts with nothing to say are left
// out, except those that readers index without checking: culprits, at.waiting, and at.missing.

#include <string>

#include "sim/report/report.h"

namespace rollcall::viz {

// Indented, with a final newline, in ASCII. Bytes that are not UTF-8 become U+FFFD.
std::string json_report(const Report& report);

}  // namespace rollcall::viz
