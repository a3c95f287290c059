#pragma once

// Jobs as people lay them out, with one mistake. Layout, sizes, the mistake, who makes it and when are drawn from a
// seed, so that the truth is known: whoever was told to deviate is to blame. Equal seeds give equal jobs on every
// machine.

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
  bool is_recorded = true;  // a Flight Recorder keeps what was called wrongly
};

// In the order of tables.
const std::vector<std::string>& layouts();
const std::vector<std::string>& mistakes();

// The mistake is left out with `healthy`.
DrawnJob drawn_job(std::uint64_t seed, bool healthy = false);

}  // namespace rollcall::blame
