#pragma once

// Turns the records of dumps into a timeline. A collective begins when it was queued and the one before it in its
// group had ended; of the calls that never ended, only the first few are drawn. Clocks are aligned by the calls that
// ranks finished together; a record without times takes a microsecond, in its rank's order. A rank that owes a call
// has an open span at the end, "not issued: all_reduce".

#include <string>
#include <vector>

#include "sim/diagnose/dump_case.h"
#include "sim/report/timeline.h"

namespace rollcall::traces {

// The spans that wait for the call that another span stands for, as indexes into the timeline's spans.
struct RecordedWait {
  std::uint32_t cause = 0;
  std::vector<std::uint32_t> waiting;
};

struct RecordedTimeline {
  Timeline timeline;
  std::vector<RecordedWait> waits;  // for calls that were never issued
  Time end = 0;
};

// Covers the ranks below `world_size`.
RecordedTimeline timeline_of(const check::DumpCase& job, Rank world_size);

// One name per group of the job; groups with the same description are distinguished by their names.
std::vector<std::string> dump_group_names(const check::JobDump& job);

}  // namespace rollcall::traces
