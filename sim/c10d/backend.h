#pragma once

// Backend: the one seam between rank programs and what runs them. The simulator, Gloo, NCCL and a
// recorder around any of them are the implementations.
//
// Every call is made by a rank, on that rank's own fiber, thread or process.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/c10d/backend_traits.h"
#include "sim/c10d/host_calls.h"
#include "sim/c10d/observation.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/stream.h"
#include "sim/c10d/work.h"

namespace rollcall {

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
  // The same for at most `timeout` of (simulated or real) time, then Error: work.wait(timeout). Backends that
  // cannot give up wait for good.
  virtual void wait_for(const Work& work, Duration) { wait(work); }
  // A call that blocks: both in one, which most calls are. A backend that can do it in one go overrides it.
  virtual void call(const Op& op) { wait(issue(op)); }
  virtual bool is_completed(const Work& work) = 0;
  // Blocks until one of them is done: the threads of a rank, each blocked in a call of its own. At least one.
  virtual void wait_any(std::span<const Work> works) { wait(works.front()); }

  // Starts several point-to-point operations that progress together, as between ncclGroupStart and
  // ncclGroupEnd. One Work each. Backends without such groups start one after the other.
  virtual std::vector<Work> issue_batch(std::span<const Op> ops) {
    std::vector<Work> works;
    for (const Op& op : ops) {
      works.push_back(issue(op));
    }
    return works;
  }
  // The rank inside the group that a completed receive came from. Asked once per receive without a source.
  virtual Rank source_of(const Work& work) = 0;

  // What the calling rank's clock shows. A backend without a clock has always 0.
  virtual Time now() const { return 0; }

  // The calling rank computes for `duration` of (simulated or real) time.
  virtual void compute(Duration duration) = 0;

  // Streams and events of the calling rank's GPU; see stream.h. Backends without streams keep these: what is
  // asked for is complete already, and a kernel is time that the host computes.
  virtual Event record_event(Stream) { return {}; }
  virtual void stream_wait(Stream, const Event&) {}
  virtual void synchronize(const Event&) {}
  virtual void synchronize_device() {}
  virtual void launch_kernel(Stream, Duration duration) { compute(duration); }
  // The host is about to read or write a tensor that calls under way still use (Storage::pending is not 0).
  virtual void settle(Storage&) {}

  // The group called `name`, or a null handle.
  virtual ProcessGroup find_group(std::string_view name) = 0;
  // Makes, splits or ends a group; the handle of what was made. Blocks like a collective, and throws Error when
  // the others do not come in time or say something else.
  virtual ProcessGroup manage(GroupCall call) { refuse_host_call(to_string(call.op.kind)); }
  // Blocks. Throws Error for a group that did not come together.
  virtual void monitored_barrier(const Op& op, const MonitoredBarrierLimits&) {
    refuse_host_call(to_string(op.kind));
  }
  // One call on the run's store. Throws Error when a key does not come in time.
  virtual StoreReply store(const StoreCall&) { refuse_host_call("the store"); }
  // GPUs of the calling rank's host: torch.cuda.device_count().
  virtual Rank device_count() const { return 0; }

  // A line the rank program printed, or a warning it caused ("UserWarning: ...").
  virtual void print(std::string_view text) = 0;
  virtual void warn(std::string_view text) = 0;

  // The rank takes its input `number`, counted from 0. For timelines; nothing depends on it.
  virtual void begin_step(std::int64_t) {}

  // What the rank found out about its own data. A backend that judges nothing has no use for it.
  virtual void observe(const Observation&) {}

  // For reports about Join: the rank has run out of inputs; and, later, everybody in the group has. `steps`:
  // its own iterations; `shadow_calls`: what it issued in between.
  virtual void joined() {}
  virtual void everyone_joined(const ProcessGroup&, std::int64_t /*steps*/, std::int64_t /*shadow_calls*/) {}

 private:
  // For backends that move tensors and nothing else.
  [[noreturn]] static void refuse_host_call(std::string_view what);
};

}  // namespace rollcall
