#pragma once

// Jobs generated from a seed: a few ranks make the same calls on a few groups, and then some of them make a mistake.
// Equal seeds give equal jobs on every machine.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/c10d/op.h"

namespace rollcall::conformance {

using Json = nlohmann::ordered_json;

struct Job {
  Rank world_size = 0;
  std::string backend;
  std::vector<std::vector<Rank>> groups;  // besides the world: g0, g1, ...
  std::vector<Json> programs;             // by rank: a list of statements
};

Job generated_job(std::uint64_t seed);

// Renumbers the ranks: rank r of `job` is rank to[r] of the result, which is otherwise the same job.
Job renumbered(const Job& job, const std::vector<Rank>& to);

// Returns a permutation of 0 ... count - 1.
std::vector<Rank> permutation(Rank count, std::uint64_t seed);

// Returns the job as the text of a scenario. With `backwards`, the last rank's program comes first.
std::string scenario_of(const Job& job, bool backwards = false);

}  // namespace rollcall::conformance
