#pragma once

// Golden files: the calls of every rank, in order, kept next to a scenario. A change that adds, drops or moves a
// call then shows as such, even where everybody still agrees and the verdict stays `ok`.
//
// The text is made to be read and reviewed: ranks that make the same calls are written once, and numbers of
// calls, times and places in files are left out, because they change for reasons nobody cares about.

#include <string>
#include <vector>

#include "scenarios/format/scenario.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

// What ranks that make the same calls, make.
struct RankCalls {
  RankSet ranks;
  std::vector<std::string> calls;  // "all_reduce on world (float32 x 1000, SUM) from gradients"
  friend bool operator==(const RankCalls&, const RankCalls&) = default;
};

// Of a report with a timeline; by first rank.
std::vector<RankCalls> calls_of(const Report& report);

std::string golden_text(const std::vector<RankCalls>& calls);
// The text must be golden_text's, or edited in its form. Throws std::runtime_error with the line that is not.
std::vector<RankCalls> parse_golden(const std::string& text);

// What became different, one sentence each: "ranks 1-3 no longer call barrier on world, after call 4 (all_reduce ...)".
std::vector<std::string> differences(const std::vector<RankCalls>& golden, const std::vector<RankCalls>& now);

// The golden file of a scenario that has one: each case of a matrix has its own. Empty: it has none.
std::string golden_file(const Scenario& scenario);

// The file against the report: what differs, or why the file cannot be read.
std::vector<std::string> compare_golden(const std::string& file, const Report& report);
// Writes the file unless it says the same already. Throws viz::OutputError.
void update_golden(const std::string& file, const Report& report);

}  // namespace rollcall::scenario
