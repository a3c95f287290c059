#pragma once

// LoneBackend: a backend for tests of code that needs one. There are no other ranks, everything completes at once, and
// calls that need other ranks are not supported. Tests override the functions that they check.

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/c10d/backend.h"
#include "sim/c10d/observer.h"

namespace rollcall::test {

class LoneBackend : public Backend, public Observer {
 public:
  const BackendTraits& traits() const override { return traits_of("gloo"); }
  Work issue(const Op& op) override { return Work(op.group, op.rank, 0); }
  void wait(const Work&) override {}
  void wait_for(const Work& work, Duration) override { wait(work); }
  void wait_any(std::span<const Work> works) override { wait(works.front()); }
  bool is_completed(const Work&) override { return true; }
  Rank source_of(const Work&) override { return -1; }
  ProcessGroup find_group(std::string_view) override { return {}; }
  ProcessGroup manage(GroupCall call) override { refuse(to_string(call.op.kind)); }
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits&) override { refuse(to_string(op.kind)); }
  StoreReply store(const StoreCall&) override { refuse("the store"); }
  void compute(Duration) override {}
  Time now() const override { return 0; }
  Streams* streams() override { return nullptr; }
  Observer& observer() override { return *this; }

 private:
  [[noreturn]] static void refuse(std::string_view what) {
    throw NotImplementedError(fmt::format("this backend does not support {}", what));
  }
};

}  // namespace rollcall::test
