#pragma once

// Realistic jobs with one mistake. The layout, the sizes, the mistake, its ranks and its time are drawn from a seed, so
// the truth is known: the ranks that were told to deviate are to blame. Equal seeds give equal jobs on every machine.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/rank_set.h"

namespace rollcall::blame {

struct DrawnJob {
  std::string layout;
  std::string mistake;      // "none" for a healthy job
  std::string scenario;     // the text of its file
  RankSet culprits;         // empty for a healthy one
  bool is_recorded = true;  // true if a Flight Recorder shows the wrong call
};

// In the order of the tables.
const std::vector<std::string>& layouts();
const std::vector<std::string>& mistakes();

// With `healthy`, the job has no mistake.
DrawnJob drawn_job(std::uint64_t seed, bool healthy = false);

}  // namespace rollcall::blame
