#pragma once

// Backend: the one seam between rank programs and what runs them. The simulator, Gloo, NCCL and a recorder around
// any of them are the implementations. It is what every backend does; what only some have, or only reports want, are
// interfaces of their own: Streams and Observer.
//
// Every call is made by a rank, on that rank's own fiber, thread or process.

#include <span>
#include <string_view>
#include <vector>

#include "sim/c10d/backend_traits.h"
#include "sim/c10d/host_calls.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/work.h"

namespace rollcall {

class Observer;
class Streams;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendTraits& traits() const = 0;
  std::string_view name() const { return traits().name; }

  // Starts `op`. The tensors stay the caller's; they must live until the Work has completed unless
  // op.async_op is set, in which case the backend keeps references of its own. Throws Error when the
  // backend refuses the call itself, as torch does for a CPU tensor on NCCL.
  virtual Work issue(const Op& op) = 0;
  // Blocks the calling rank until `work` is done. Throws Error when the operation failed.
  virtual void wait(const Work& work) = 0;
  // The same for at most `timeout` of (simulated or real) time, then Error: work.wait(timeout).
  virtual void wait_for(const Work& work, Duration timeout) = 0;
  // Blocks until one of them is done: the threads of a rank, each blocked in a call of its own. At least one.
  virtual void wait_any(std::span<const Work> works) = 0;
  virtual bool is_completed(const Work& work) = 0;
  // The rank inside the group that a completed receive came from. Asked once per receive without a source.
  virtual Rank source_of(const Work& work) = 0;

  // A call that blocks: both in one, which most calls are. A backend that can do it in one go overrides it.
  virtual void call(const Op& op) { wait(issue(op)); }
  // Starts several point-to-point operations that progress together, as between ncclGroupStart and
  // ncclGroupEnd. One Work each. Without such groups, one after the other.
  virtual std::vector<Work> issue_batch(std::span<const Op> ops);

  // The group called `name`, or a null handle.
  virtual ProcessGroup find_group(std::string_view name) = 0;
  // Makes, splits or ends a group; the handle of what was made. Blocks like a collective, and throws Error when
  // the others do not come in time or say something else.
  virtual ProcessGroup manage(GroupCall call) = 0;
  // Blocks. Throws Error for a group that did not come together. Only where BackendTraits has it.
  virtual void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) = 0;
  // One call on the run's store. Throws Error when a key does not come in time.
  virtual StoreReply store(const StoreCall& call) = 0;

  // The calling rank computes for `duration` of (simulated or real) time.
  virtual void compute(Duration duration) = 0;
  // What the calling rank's clock shows. A backend without a clock has always 0.
  virtual Time now() const = 0;

  // The calling rank's GPU, borrowed; null where calls block their host.
  virtual Streams* streams() = 0;
  // Who hears what the calling rank notes for reports; borrowed.
  virtual Observer& observer() = 0;
};

}  // namespace rollcall
