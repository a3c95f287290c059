#pragma once

// The context of a running rank. One slot per OS thread says which rank is running: the scheduler sets it on every
// fiber switch, a real launcher once per process. Only this header and the free functions of collectives.h read it;
// nothing below them does.

#include <cstdint>
#include <memory>
#include <utility>

#include "sim/base/expects.h"
#include "sim/base/scope_table.h"
#include "sim/c10d/backend.h"
#include "sim/c10d/step_budget.h"
#include "sim/c10d/stream.h"
#include "sim/c10d/warnings.h"
#include "sim/torch/torch_release.h"

namespace rollcall {

struct CheckpointFiles;

struct RankContext {
  Backend* backend = nullptr;
  ScopeTable* scopes = nullptr;                         // shared by the ranks of one process
  CheckpointFiles* files = nullptr;                     // likewise
  const TorchTraits* torch = &traits_of(newest_torch);  // the release that the run simulates
  ProcessGroup world;
  Device device;  // where tensors live when the program names no device
  Rank gpus = 0;  // of its host: torch.cuda.device_count()
  // init_process_group was given a device_id, and made NCCL's communicators at once.
  bool is_device_bound = false;
  ScopeId scope = no_scope;
  Rank rank = 0;             // global
  bool has_threads = false;  // several make its calls, and while one is held up, the others go on
  bool shadowing = false;    // has joined: what it issues comes from its hooks
  Stream stream;             // torch.cuda.current_stream()
  std::uint8_t streams = 0;  // made by the rank, besides the default stream

  std::unique_ptr<WarningFilter> warnings;  // per process in Python; null while nothing was warned about
  std::int64_t shadow_calls = 0;            // for reports: issued while shadowing, in this context
  std::int64_t inputs_taken = -1;           // for reports: how far the rank got; -1: it does not count
  bool ran_out = false;         // likewise: the loop over its inputs ended because there were no more
  StepBudget* steps = nullptr;  // shared by all ranks of a run; null: no limit
  std::unique_ptr<std::vector<GroupId>> destroyed;  // groups this rank has destroyed; null: none
};

namespace detail {
inline constinit thread_local RankContext* current_rank = nullptr;
}

// The running rank. Calling it outside a rank program is our bug or the test's: it aborts.
inline RankContext& this_rank() {
  expects(detail::current_rank != nullptr, "torch.distributed's functions are called by a running rank");
  return *detail::current_rank;
}

// Marks the calls that the rank issues as its hooks' calls, or not, for the lifetime of the object. The destructor
// restores the previous mark.
class Shadowing {
 public:
  explicit Shadowing(bool shadows = true) : outer_(std::exchange(this_rank().shadowing, shadows)) {}
  ~Shadowing() { this_rank().shadowing = outer_; }
  Shadowing(const Shadowing&) = delete;
  Shadowing& operator=(const Shadowing&) = delete;

 private:
  bool outer_;
};

// Spends a step of the run's limit, for one loop iteration or call.
inline void spend_step(const RankContext& rank) {
  if (rank.steps != nullptr) [[likely]] {
    rank.steps->spend();
  }
}
inline void spend_step() { spend_step(this_rank()); }

}  // namespace rollcall
