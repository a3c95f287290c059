#pragma once

// One thing that a line of a job's log says about its hang. Read by traces/formats/job_log, judged by log_judge.

#include <cstdint>
#include <string>

#include "sim/report/rank_set.h"

namespace rollcall::check {

struct LogFact {
  enum class Kind : std::uint8_t {
    fingerprint,  // TORCH_DISTRIBUTED_DEBUG=DETAIL: what a rank was about to call when another called otherwise
    barrier_missing,  // monitored_barrier: ranks that did not come
    timed_out,        // the watchdog: a call of this rank that did not finish
    progress,         // the watchdog: the last call this rank has enqueued
    not_joined,       // TORCH_NCCL_DESYNC_DEBUG: ranks that did not come to call `seq`
    launched,         // NCCL RAS: how many collectives these ranks have launched on a communicator
    unreachable,      // NCCL RAS: ranks that do not answer
  };

  Kind kind = Kind::fingerprint;
  RankSet ranks;
  std::int64_t seq = -1;
  std::int64_t count = 0;  // launched: of how many ranks; the line may not name them
  std::string group;       // as the line names it; may be empty
  std::string op;          // "ALLREDUCE"
  std::string shape;       // "[2, 3]"
  std::string dtype;
  std::string place;  // "rank3.log:17"

  friend bool operator==(const LogFact&, const LogFact&) = default;
};

}  // namespace rollcall::check
