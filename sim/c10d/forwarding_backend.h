#pragma once

// A Backend around a Backend that passes everything on. Recorders and the like override what they watch.

#include "sim/c10d/backend.h"

namespace rollcall {

class ForwardingBackend : public Backend {
 public:
  // `inner` is borrowed and must outlive this.
  explicit ForwardingBackend(Backend& inner) : inner_(inner) {}

  const BackendTraits& traits() const override { return inner_.traits(); }
  Work issue(const Op& op) override { return inner_.issue(op); }
  void wait(const Work& work) override { inner_.wait(work); }
  void wait_for(const Work& work, Duration timeout) override { inner_.wait_for(work, timeout); }
  bool is_completed(const Work& work) override { return inner_.is_completed(work); }
  void wait_any(std::span<const Work> works) override { inner_.wait_any(works); }
  std::vector<Work> issue_batch(std::span<const Op> ops) override { return inner_.issue_batch(ops); }
  Rank source_of(const Work& work) override { return inner_.source_of(work); }
  Time now() const override { return inner_.now(); }
  void compute(Duration duration) override { inner_.compute(duration); }
  Event record_event(Stream stream) override { return inner_.record_event(stream); }
  void stream_wait(Stream stream, const Event& event) override { inner_.stream_wait(stream, event); }
  void synchronize(const Event& event) override { inner_.synchronize(event); }
  void synchronize_device() override { inner_.synchronize_device(); }
  void launch_kernel(Stream stream, Duration duration) override { inner_.launch_kernel(stream, duration); }
  void settle(Storage& storage) override { inner_.settle(storage); }
  ProcessGroup find_group(std::string_view group) override { return inner_.find_group(group); }
  ProcessGroup manage(GroupCall call) override { return inner_.manage(std::move(call)); }
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override {
    inner_.monitored_barrier(op, limits);
  }
  StoreReply store(const StoreCall& call) override { return inner_.store(call); }
  Rank device_count() const override { return inner_.device_count(); }
  void print(std::string_view text) override { inner_.print(text); }
  void warn(std::string_view text) override { inner_.warn(text); }
  void begin_step(std::int64_t number) override { inner_.begin_step(number); }
  void observe(const Observation& observation) override { inner_.observe(observation); }
  void joined() override { inner_.joined(); }
  void everyone_joined(const ProcessGroup& group, std::int64_t steps, std::int64_t shadow_calls) override {
    inner_.everyone_joined(group, steps, shadow_calls);
  }

 protected:
  Backend& inner() { return inner_; }

 private:
  Backend& inner_;
};

}  // namespace rollcall
