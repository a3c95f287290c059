#pragma once

// The result of a search through a program's schedules, in addition to the report of the first one that fails.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/rank_set.h"
#include "sim/report/verdict.h"

namespace rollcall {

// One way to fail, and how often it was found.
struct FoundFailure {
  std::string verdict;
  FindingKind kind = FindingKind::ok;
  std::string headline;  // of the first
  RankSet culprits;      // of the first
  std::int64_t count = 0;
  std::string replay;  // the command that repeats the first
};

// Adds the outcome to those of the same verdict and kind.
inline void add(const Outcome& outcome, std::vector<Outcome>& outcomes) {
  const auto known = std::ranges::find_if(outcomes, [&outcome](const Outcome& other) {
    return other.verdict == outcome.verdict && other.kind == outcome.kind;
  });
  if (known == outcomes.end()) {
    outcomes.push_back(outcome);
  } else {
    known->count += outcome.count;
  }
}

struct SearchResult {
  std::vector<Outcome> outcomes;
  std::vector<FoundFailure> failures;  // in order of discovery
  std::int64_t distinct = 0;           // different schedules among those that were run
  std::int64_t cut = 0;                // begun and abandoned: they led to a state that another had reached
  double space = 1;                    // the estimated number of schedules
  std::vector<std::string> bounds;     // why the search is not exhaustive: one sentence each
  bool interrupted = false;
  // Outcomes that differ are a race: ranks decide by timing, or the usual schedule is ok.
  bool differences_are_races = false;
};

}  // namespace rollcall
