#pragma once

// Converts recorded calls to programs: what each rank did, as statements.
//
// Calls that were over when the job stopped happen again; those that were not, hang again. A recording contains no
// roots, reduce ops, tags, splits, and values, so these are the defaults. If rings have lost their beginnings, calls
// begin where all members still have them.

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/recordings/recorded_statements.h"
#include "sim/diagnose/dump.h"
#include "sim/report/diagnosis.h"

namespace rollcall::scenario {

struct RecordedPrograms {
  Rank world_size = 1;
  std::string backend;                               // "nccl" or "gloo"
  std::map<std::string, std::vector<Rank>> groups;   // besides the world
  std::vector<OrderedJson> statements;               // distinct
  std::vector<std::vector<std::uint32_t>> programs;  // by rank: indexes of statements
};

// `diagnosis` is that of `job`: whether it stands still, and whose device does not follow.
RecordedPrograms recorded_programs(const check::JobDump& job, const Diagnosis& diagnosis,
                                   const RecordedProgramOptions& options);

}  // namespace rollcall::scenario
