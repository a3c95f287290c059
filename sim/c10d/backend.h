#pragma once

// Backend: the only interface between rank programs and what runs them. The simulator, Gloo, NCCL and a recorder around
// any of them implement it. It has what every backend does; Streams, which only some backends have, and Observer, which
// only reports need, are interfaces of their own.
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

  // Starts `op`. The caller keeps the tensors, which must live until the Work has completed unless op.async_op is set,
  // in which case the backend keeps references of its own. Throws Error when the backend refuses the call itself, as
  // torch does for a CPU tensor on NCCL.
  virtual Work issue(const Op& op) = 0;
  // Blocks the calling rank until `work` is done. Throws Error when the operation failed.
  virtual void wait(const Work& work) = 0;
  // The same, but throws Error after `timeout` of (simulated or real) time: work.wait(timeout).
  virtual void wait_for(const Work& work, Duration timeout) = 0;
  // Blocks until one of `works`, of which there is at least one, is done: a rank's threads, each blocked in its own
  // call.
  virtual void wait_any(std::span<const Work> works) = 0;
  virtual bool is_completed(const Work& work) = 0;
  // The program lets go of the handle, perhaps without having waited. Returns true if a message may be lost with it,
  // which happens only on Gloo: see Observation::Kind::dropped.
  virtual bool drop(const Work& /*work*/) { return false; }
  // The rank inside the group that sent a completed receive. Called once per receive without a source.
  virtual Rank source_of(const Work& work) = 0;

  // A blocking call, as most are: issue and wait. A backend that can do both in one step overrides it.
  virtual void call(const Op& op) { wait(issue(op)); }
  // Starts several point-to-point operations that progress together, as between ncclGroupStart and ncclGroupEnd.
  // Returns one Work for each. A backend without such groups starts them one after another.
  virtual std::vector<Work> issue_batch(std::span<const Op> ops);

  // The group named `name`, or a null handle.
  virtual ProcessGroup find_group(std::string_view name) = 0;
  // Makes, splits or destroys a group; returns the handle of a new one. Blocks like a collective. Throws Error when the
  // other ranks do not arrive in time or give other arguments.
  virtual ProcessGroup manage(GroupCall call) = 0;
  // Blocks. Throws Error when the group did not assemble. Only for backends with BackendTraits::has_monitored_barrier.
  virtual void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) = 0;
  // Makes one call on the run's store. Throws Error when a key does not arrive in time.
  virtual StoreReply store(const StoreCall& call) = 0;

  // The calling rank computes for `duration` of (simulated or real) time.
  virtual void compute(Duration duration) = 0;
  // The time on the calling rank's clock. A backend without a clock always returns 0.
  virtual Time now() const = 0;

  // The calling rank's GPU, borrowed; null where calls block their host.
  virtual Streams* streams() = 0;
  // Receives the calling rank's notes for reports; borrowed.
  virtual Observer& observer() = 0;
};

}  // namespace rollcall
