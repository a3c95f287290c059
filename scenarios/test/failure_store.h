#pragma once

// Failures that only some schedules have: stored in .rollcall/failures of the current folder when `explore` finds one,
// and tried first by `test`, until they are gone.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/explore/schedule.h"

namespace rollcall::scenario {

struct Scenario;
struct Case;

struct StoredFailure {
  std::string file;        // of the scenario, relative to the current folder
  std::string parameters;  // of the case; empty: the file has no matrix
  std::uint64_t seed = 0;
  sim::Schedule schedule{};
  std::string path{};  // the file it is stored in

  bool is_of(const Case& one) const;
};

// In the order of their paths. Files that cannot be read are ignored.
std::vector<StoredFailure> stored_failures();

// `headline` is for people who read the file. Throws viz::OutputError.
void store_failure(const Scenario& scenario, std::uint64_t seed, const sim::Schedule& schedule,
                   const std::string& headline);

void forget_failure(const StoredFailure& failure);

}  // namespace rollcall::scenario
