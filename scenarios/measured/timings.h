#pragma once

// Times of calls on a machine, by rank if they were recorded per rank: the input of `rollcall slow`.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/diagnose/dump.h"

namespace rollcall::measured {

// One call of a group, or the mean of several.
struct Timing {
  OpKind op = OpKind::all_reduce;
  std::int64_t bytes = 0;
  std::vector<int> members{};    // indexes into Timings::ranks, ascending
  double time = 0;               // microseconds that the data took: the time of the member that arrived last
  std::vector<double> waited{};  // how long each member waited for the last one; empty if unknown
};

struct RankName {
  std::string name;  // "3", "node1:2001"
  int host = 0;      // index into Timings::hosts
};

struct Timings {
  std::vector<RankName> ranks;
  std::vector<std::string> hosts;
  std::vector<Timing> calls;
};

// True if the file is rollcall's own (docs/slow.md), or has lines of NCCL Inspector.
bool is_timings_file(const std::string& path);
// Reads one file of the former kind, or several of the latter together. Throws InvalidScenario.
Timings read_timings(const std::vector<std::string>& paths);

// Takes a job's Flight Recorder dumps or profiler traces: the calls whose time every member has. Ranks are on hosts in
// blocks of `gpus_per_host`.
Timings timings_of(const check::JobDump& job, int gpus_per_host);

}  // namespace rollcall::measured
