#pragma once

// A job's dumps, read and judged.

#include <iosfwd>
#include <string>
#include <vector>

#include "sim/report/diagnosis.h"
#include "sim/report/report.h"
#include "viz/json/json_diagnosis.h"

namespace rollcall::cli {

struct CommandLine;

struct JudgedDumps {
  Diagnosis diagnosis;
  viz::Remarks remarks;  // about the files
  Report recorded;       // the recorded job, for a page
};

// Throws UsageError if there are none.
JudgedDumps judge_dumps(const CommandLine& line, const std::vector<std::string>& paths);

void write_page(const JudgedDumps& dumps, std::ostream& out);

}  // namespace rollcall::cli
