#pragma once

// A Backend around a Backend, and an Observer around an Observer, that forward everything. Recorders and similar
// classes override what they watch. `call` is not forwarded: a recorder sees a blocking call as its two halves, issue
// and wait.

#include "sim/c10d/backend.h"
#include "sim/c10d/observer.h"

namespace rollcall {

class ForwardingBackend : public Backend {
 public:
  // `inner` is borrowed and must outlive this.
  explicit ForwardingBackend(Backend& inner) : inner_(inner) {}

  const BackendTraits& traits() const override { return inner_.traits(); }
  Work issue(const Op& op) override { return inner_.issue(op); }
  void wait(const Work& work) override { inner_.wait(work); }
  void wait_for(const Work& work, Duration timeout) override { inner_.wait_for(work, timeout); }
  void wait_any(std::span<const Work> works) override { inner_.wait_any(works); }
  bool is_completed(const Work& work) override { return inner_.is_completed(work); }
  bool drop(const Work& work) override { return inner_.drop(work); }
  Rank source_of(const Work& work) override { return inner_.source_of(work); }
  std::vector<Work> issue_batch(std::span<const Op> ops) override { return inner_.issue_batch(ops); }
  ProcessGroup find_group(std::string_view group) override { return inner_.find_group(group); }
  ProcessGroup manage(GroupCall call) override { return inner_.manage(std::move(call)); }
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override {
    inner_.monitored_barrier(op, limits);
  }
  StoreReply store(const StoreCall& call) override { return inner_.store(call); }
  void compute(Duration duration) override { inner_.compute(duration); }
  Time now() const override { return inner_.now(); }
  Streams* streams() override { return inner_.streams(); }
  Observer& observer() override { return inner_.observer(); }

 protected:
  Backend& inner() { return inner_; }

 private:
  Backend& inner_;
};

class ForwardingObserver : public Observer {
 public:
  // `next` is borrowed and must outlive this.
  explicit ForwardingObserver(Observer& next) : next_(next) {}

  void print(std::string_view text) override { next_.print(text); }
  void warn(std::string_view text) override { next_.warn(text); }
  void observe(const Observation& observation) override { next_.observe(observation); }
  void begin_step(std::int64_t number) override { next_.begin_step(number); }
  void joined() override { next_.joined(); }
  void everyone_joined(const ProcessGroup& group, std::int64_t steps, std::int64_t shadow_calls) override {
    next_.everyone_joined(group, steps, shadow_calls);
  }

 private:
  Observer& next_;
};

}  // namespace rollcall
