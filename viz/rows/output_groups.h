#pragma once

// The ranks' output, with equal lines of different ranks folded into one: on 1,000 ranks, a
// program prints 1,000 lines that say one thing.

#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::viz {

struct OutputGroup {
  RankSet ranks;  // each printed the text once; a rank that repeats it is in several groups
  Time time = 0;  // when the first of them printed it
  bool warning = false;
  std::string text;
};

// `output` is sorted by rank. The groups are in order of time; at equal times, the lowest rank's comes first, in its
// program's order. So a report that is read back from these groups has the same ones.
std::vector<OutputGroup> group_output(const std::vector<OutputLine>& output);
// The lines of these groups, as group_output takes them.
std::vector<OutputLine> lines_of(const std::vector<OutputGroup>& groups);

}  // namespace rollcall::viz
