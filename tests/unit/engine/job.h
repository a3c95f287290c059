#pragma once

// Helpers for tests of whole runs: a job on one of the two backends, and questions about its report.

#include <array>
#include <string>

#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::sim {

using State = RankClass::State;

// A simulated job, with tensors on the device that its backend needs.
struct Job {
  const char* backend;

  Options options(Rank world_size) const { return {.world_size = world_size, .backend = backend}; }
  Report run(Rank world_size, const Program& program) const { return sim::run(options(world_size), program); }
  // The same, but nccl has communicators from the start.
  Report run_eagerly(Rank world_size, const Program& program) const {
    Options eager = options(world_size);
    eager.eager_communicators = true;
    return sim::run(eager, program);
  }
  Tensor numbers(std::int64_t count, double value, Dtype dtype = Dtype::float32) const {
    return Tensor::full({count}, value, dtype, this_rank().device);
  }
  Tensor number(double value = 0) const { return numbers(1, value); }
};

inline const Job gloo_job{"gloo"};
inline const Job nccl_job{"nccl"};
inline const std::array<Job, 2> both_jobs{gloo_job, nccl_job};

inline Options gloo(Rank world_size) { return gloo_job.options(world_size); }
inline Options nccl(Rank world_size) { return nccl_job.options(world_size); }

inline std::string word(const Report& report) { return std::string(verdict_word(report.verdict)); }

inline const Finding& finding(const Report& report) {
  REQUIRE(finding_of(report.verdict) != nullptr);
  return *finding_of(report.verdict);
}

// Returns "ok", or the verdict and its kind: "deadlock crossed_order".
inline std::string kind(const Report& report) {
  return word(report) == "ok" ? "ok" : word(report) + " " + std::string(to_string(finding(report).kind));
}

inline std::string culprits(const Report& report) { return to_string(finding(report).culprits); }

inline Tensor one() { return Tensor::full({1}, 1, Dtype::float32, this_rank().device); }

inline Rank next_of(Rank rank) { return (rank + 1) % get_world_size(); }
inline Rank previous_of(Rank rank) { return (rank + get_world_size() - 1) % get_world_size(); }

}  // namespace rollcall::sim
