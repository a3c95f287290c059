#pragma once

// The records of dumps as a timeline. A collective begins when it was queued and the one before it in its group had
// ended; of calls that never did, the first few are there. Clocks are made one by the calls that ranks finished
// together; without times, a record takes a microsecond, in its rank's order. A rank that owes a call has an open span
// at the end, "not issued: all_reduce".

#include <string>
#include <vector>

#include "sim/diagnose/dump_case.h"
#include "sim/report/timeline.h"

namespace rollcall::traces {

// Spans that wait for what another one stands for, as indexes into the timeline's.
struct RecordedWait {
  std::uint32_t cause = 0;
  std::vector<std::uint32_t> waiting;
};

struct RecordedTimeline {
  Timeline timeline;
  std::vector<RecordedWait> waits;  // for calls that were never issued
  Time end = 0;
};

// Of the ranks below `world_size`.
RecordedTimeline timeline_of(const check::DumpCase& job, Rank world_size);

// A name for each group of the job; those of equal description are told apart.
std::vector<std::string> dump_group_names(const check::JobDump& job);

}  // namespace rollcall::traces
