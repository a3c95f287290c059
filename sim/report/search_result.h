#pragma once

// What a search through the schedules of a program has found, in addition to the report of the first that fails.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/rank_set.h"
#include "sim/report/verdict.h"

namespace rollcall {

// A way to fail, as often as it was found.
struct FoundFailure {
  std::string verdict;
  FindingKind kind = FindingKind::ok;
  std::string headline;  // of the first
  RankSet culprits;      // of the first
  std::int64_t count = 0;
  std::string replay;  // the command that repeats the first
};

struct SearchResult {
  std::vector<Outcome> outcomes;
  std::vector<FoundFailure> failures;  // in order of discovery
  std::int64_t distinct = 0;           // different schedules among those that were run
  std::int64_t cut = 0;                // begun and given up: they led where another had been
  double space = 1;                    // how many there seem to be
  std::vector<std::string> bounds;     // why that is not all: one sentence each
  bool interrupted = false;
};

}  // namespace rollcall
