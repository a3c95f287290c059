#pragma once

// Recorder: a Backend that wraps another one and logs every call of its rank: issued, waited for, completed, failed.
// It does not depend on the wrapped backend, so a simulated rank can keep the same log as a real one, and the two
// can be compared.
//
// If calls run on a GPU, wait() proves nothing: a call is logged as complete when it is seen to be complete, and its
// results when the host has them. Results that a later call overwrote before the host saw them have no digest, on any
// backend, so simulated and real ranks have digests for the same calls.

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>

#include "real/process/run_clock.h"
#include "real/rank/record.h"
#include "sim/base/error.h"
#include "sim/c10d/forwarding_backend.h"
#include "sim/c10d/stream.h"

namespace rollcall::real {

// Thrown by a real backend if an operation failed because of other ranks: a closed connection, a timeout. The
// rank that gets it is not to blame.
struct LostPeerError : RuntimeError {
  using RuntimeError::RuntimeError;
  explicit LostPeerError(const RuntimeError& error) : RuntimeError(error) {}
};

class Recorder final : public ForwardingBackend, private ForwardingObserver, private Streams {
 public:
  // Borrows all of them. To be used by one rank, on its own thread.
  Recorder(Backend& inner, RecordSink& sink, const RunClock& clock)
      : ForwardingBackend(inner),
        ForwardingObserver(inner.observer()),
        sink_(sink),
        clock_(clock),
        device_(inner.streams()) {}
  // For a simulated rank, whose calls on its GPU may have completed after its last record.
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // The program has returned. Waits for its streams, as the end of its process would.
  void finish();
  // The program has raised. Its process takes a while to end, and its GPU continues meanwhile.
  void look_back();

  Work issue(const Op& op) override;
  std::vector<Work> issue_batch(std::span<const Op> ops) override;
  void wait(const Work& work) override;
  void wait_for(const Work& work, Duration timeout) override;
  void wait_any(std::span<const Work> works) override;
  Rank source_of(const Work& work) override;
  bool drop(const Work& work) override;
  ProcessGroup manage(GroupCall call) override;
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override;
  StoreReply store(const StoreCall& call) override;
  Streams* streams() override { return device_ != nullptr ? this : nullptr; }
  Observer& observer() override { return *this; }

  // These are for a backend whose calls run on a device, while the rank's host waits for the device.
  // The device's clock starts now.
  void clock_starts() { device_clock_ = clock_.now(); }
  // The call has completed, and ran from `from` to `to` by that clock.
  void ran(const Work& work, Duration from, Duration to);
  // The host waits, ultimately for this call. Called repeatedly, on the rank's own thread.
  void blocked_in(const Work& work);
  // The call that is being issued needs a communicator that does not exist yet: the host waits for the other members.
  // Called repeatedly.
  void connecting();
  void connected();

  // A record without a call: how the program began and ended.
  void note(Record::Kind kind, const std::string& type = {}, const std::string& text = {},
            std::int64_t value = 0);

 private:
  void print(std::string_view text) override;
  void warn(std::string_view text) override;
  void observe(const Observation& observation) override;

  // A call that has not been seen to complete. Its tensors are kept: the caller may drop those of async calls.
  struct Call {
    std::int64_t number = 0;
    Work work{};
    TensorList results;
    bool from_anyone = false;
    Time ran_from = -1;
    Time ran_to = -1;
    bool is_complete = false;  // and logged as such
    bool is_closed = false;    // its results have been seen, or never will be
  };
  // Identifies a call by the values in its Work: group, number, and whether it is a message.
  using Key = std::tuple<GroupId, std::int64_t, bool>;

  using Open = std::map<Key, Call>::iterator;

  Event record_event(Stream stream) override { return device_->record_event(stream); }
  void stream_wait(Stream stream, const Event& event) override { device_->stream_wait(stream, event); }
  void launch_kernel(Stream stream, const Kernel& kernel) override { device_->launch_kernel(stream, kernel); }
  void synchronize(const Event& event) override;
  void synchronize_device() override;
  void settle(Storage& storage) override;

  void wait_on_host(const Work& work, const std::function<void()>& wait);
  void note_launch(const Op& op, Key key);
  bool note_completed();
  bool note_completed(Open call);
  void close(Open call);
  void note_seen(Open call);
  void let_go(Call& call);

  Record make(Record::Kind kind, std::int64_t call) const;
  Record make_issue(const Op& op, std::int64_t batch);
  std::int64_t log_issue(const Op& op, std::int64_t batch);
  // Logs a blocking call, from its issue to its end. `run` makes the call, and may add to its last record.
  template <typename Run>
  auto log_blocking(const Record& issue, Run&& run);
  void log_error(Record::Kind kind, std::int64_t call, const Error& error);
  Work accepted(const Op& op, std::int64_t number, const Work& work);
  static Key key_of(const Work& work) { return {work.group(), work.seq(), work.is_point_to_point()}; }

  RecordSink& sink_;
  const RunClock& clock_;
  std::int64_t calls_ = 0;
  std::map<Key, Call> open_;
  Streams* device_;                               // null: calls block their host
  std::map<const Storage*, Key> writers_;         // the calls whose results have not been seen yet
  std::map<const Storage*, std::int64_t> users_;  // the number of the last call that uses one of those
  Time device_clock_ = 0;                         // when the GPU's clock started
  std::int64_t issuing_ = -1;                     // the number of the call, or of its batch's first
  bool is_connecting_ = false;                    // and its wait has been logged
  std::int64_t blocked_in_ = -1;                  // the number of the call that the host's wait is logged for
  std::map<Key, Rank> sources_;                   // of receives from any source, until the caller asks
};

// A backend whose calls run on a device.
class WatchedDevice {
 public:
  virtual ~WatchedDevice() = default;

  // `watcher` is borrowed.
  virtual void watch(Recorder& watcher) = 0;
};

}  // namespace rollcall::real
