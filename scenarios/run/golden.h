#pragma once

// Golden files: the calls of every rank, in order, kept next to a scenario. So a change that adds, drops, or moves a
// call is visible, even if all ranks still agree and the verdict stays `ok`.
//
// The text is meant to be read and reviewed: ranks that make the same calls are written once, and numbers of calls,
// times, and places in files are left out, because they change for irrelevant reasons.

#include <string>
#include <vector>

#include "scenarios/format/scenario.h"
#include "sim/report/report.h"

namespace rollcall::scenario {

// Ranks that make the same calls, and these calls.
struct RankCalls {
  RankSet ranks;
  std::vector<std::string> calls;  // "all_reduce on world (float32 x 1000, SUM) from gradients"
  friend bool operator==(const RankCalls&, const RankCalls&) = default;
};

// Returns the calls in a report that has a timeline; by first rank.
std::vector<RankCalls> calls_of(const Report& report);

std::string golden_text(const std::vector<RankCalls>& calls);
// The text must be golden_text's, or edited in its form. Throws std::runtime_error with the first line that is not.
std::vector<RankCalls> parse_golden(const std::string& text);

// Returns the differences, one sentence each: "ranks 1-3 no longer call barrier on world, after call 4 (all_reduce
// ...)".
std::vector<std::string> differences(const std::vector<RankCalls>& golden, const std::vector<RankCalls>& now);

// The golden file of a scenario: each case of a matrix has its own. Empty if it has none.
std::string golden_file(const Scenario& scenario);

// Compares the file with the report: returns the differences, or why the file cannot be read.
std::vector<std::string> compare_golden(const std::string& file, const Report& report);
// Writes the file unless it has the same text already. Throws viz::OutputError.
void update_golden(const std::string& file, const Report& report);

}  // namespace rollcall::scenario
