#pragma once

// One fact about a hang from a source other than recordings: a log line, a stack, a counter. Read by
// traces/logs/job_evidence, judged by log_judge.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/rank_set.h"

namespace rollcall::check {

struct LogFact {
  enum class Kind : std::uint8_t {
    fingerprint,  // TORCH_DISTRIBUTED_DEBUG=DETAIL: what a rank was about to call when another's call differed
    barrier_missing,  // monitored_barrier: ranks that did not arrive
    named_missing,    // monitored_barrier: the rank that named these
    timed_out,        // the watchdog: a call of this rank that did not finish
    told_of_timeout,  // likewise, and neither the call nor its group is known
    watchdog_stuck,   // the watchdog of this rank has done nothing for `count` seconds; 0: unknown
    repeated,         // Ray left out lines of other ranks that are like this one
    lost_store,       // the process that serves the store had ended before this rank
    stopped_job,      // a launcher, or the scheduler, ended the job without a reason in it; `text` says how
    shared_gpu,       // NCCL: these ranks have one GPU; `text` has its bus. Empty: they count within a group
    model,     // DDP: this rank's model has `count` parameters that need gradients; `text`: who says so
    progress,  // the watchdog: the last call this rank has enqueued, and in `count` the last it has completed
    not_joined,     // TORCH_NCCL_DESYNC_DEBUG: ranks that did not make call `seq`
    not_finished,   // likewise: ranks that made it, and for which it did not end
    launched,       // NCCL: how many collectives these ranks have launched on a communicator
    unreachable,    // NCCL RAS: ranks that do not answer
    wrote,          // there is a log of this rank
    calls,          // DETAIL: this rank makes this call
    raised,         // an error of this rank's own program; `text` has it
    logged,         // likewise, and the program survived it
    unplaced,       // likewise, of a rank that the log does not name: `ranks` is empty
    unplaced_loss,  // a call of a rank that the log does not name failed, because another was gone or late
    aborted,        // Gloo ended this rank: it was sent more than it expected. `text`: "12 vs 8" bytes
    truncated,      // likewise, NCCL ended a call of this rank
    lost_peer,      // a call of this rank failed because another rank was gone
    gave_up,        // a call of this rank did not finish in time
    blamed,         // monitored_barrier: the rank that this one waited for
    first_to_fail,  // torchelastic: the rank whose failure was observed first
    outlived,       // torchelastic ended this rank's process after another had failed: until then, it ran
    stack,          // where this rank's program is: in a call (`op`), or elsewhere (`op` is empty)
    nccl_failed,    // NCCL warned that a call of its own failed: `ranks` is empty, `text` names host and GPU
    device_error,   // the kernel's log: a GPU reported an error
    ended,          // the process of this rank was killed, or failed; `text` says how
    exited,         // the process of this rank has ended without failing
    left,           // this rank's program ended, well or not: torch says that it had not destroyed its groups
    in_store_barrier,  // this rank makes group `seq` and waits for others in the store: `count` of `expected` are there
    stopped,  // the process of this rank cannot continue; `text` says why
  };

  Kind kind = Kind::fingerprint;
  RankSet ranks;
  std::int64_t seq = -1;
  // launched: of how many ranks; the line may not name them. first_to_fail: when, in seconds of the launcher's clock.
  // 0: unknown.
  std::int64_t count = 0;
  std::int64_t expected = 0;
  bool is_local = false;    // first_to_fail: the number is that of a rank on its machine
  std::string group;        // as the line names it; may be empty. DETAIL: the writer's number in its group
  Rank rank_in_group = -1;  // timed_out, progress: the writer's number in its group; -1: unknown
  std::string op;           // "ALLREDUCE"
  std::string shape;        // "[2, 3]"
  std::string dtype;
  std::string text;                 // the text of the line
  std::string site;                 // of the user's code: "train.py:12"
  std::vector<std::string> frames;  // stack: "main at train.py:12", outermost first
  std::string file;
  std::int64_t line = 0;  // from 1; 0: the fact is in no single line

  // "rank3.log:17".
  std::string place() const { return line > 0 ? file + ":" + std::to_string(line) : file; }
  bool is_stack_in_call() const { return kind == Kind::stack && !op.empty(); }

  friend bool operator==(const LogFact&, const LogFact&) = default;
};

}  // namespace rollcall::check
