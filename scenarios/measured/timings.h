#pragma once

// Times of calls on a machine, by rank where somebody wrote them down: what `rollcall slow` looks at.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall::measured {

// One call of a group, or the mean of some.
struct Timing {
  OpKind op = OpKind::all_reduce;
  std::int64_t bytes = 0;
  std::vector<int> members{};    // places in Timings::ranks, ascending
  double time = 0;               // microseconds the data took: of the member that came last
  std::vector<double> waited{};  // how long each member waited for the last one; empty: not known
};

struct RankName {
  std::string name;  // "3", "node1:2001"
  int host = 0;      // place in Timings::hosts
  int local = 0;     // among the ranks of its host
};

struct Timings {
  std::vector<RankName> ranks;
  std::vector<std::string> hosts;
  std::vector<Timing> calls;
};

// rollcall's own file (docs/slow.md) or the lines of NCCL Inspector, several files together. Throws
// InvalidScenario. Nothing when the first file is neither.
bool is_timings_file(const std::string& path);
Timings read_timings(const std::vector<std::string>& paths);

}  // namespace rollcall::measured
