#pragma once

// Recorder: a Backend around another that logs every call of its rank: issued, waited for, completed, failed.
// It knows nothing of what is inside, so a simulated rank can keep the same log as a real one, and the two
// can be laid side by side.

#include <cstdint>
#include <map>
#include <tuple>

#include "real/process/run_clock.h"
#include "real/rank/record.h"
#include "sim/base/error.h"
#include "sim/c10d/forwarding_backend.h"

namespace rollcall::real {

// What a real backend throws when an operation failed because of others: a connection closed, a timeout. The
// rank that gets it is not to blame.
struct LostPeerError : RuntimeError {
  using RuntimeError::RuntimeError;
};

class Recorder final : public ForwardingBackend, private ForwardingObserver {
 public:
  // Borrowed, all of them. To be used by one rank, on its own thread.
  Recorder(Backend& inner, RecordSink& sink, const RunClock& clock)
      : ForwardingBackend(inner), ForwardingObserver(inner.observer()), sink_(sink), clock_(clock) {}

  Work issue(const Op& op) override;
  std::vector<Work> issue_batch(std::span<const Op> ops) override;
  void wait(const Work& work) override;
  void wait_any(std::span<const Work> works) override;
  Rank source_of(const Work& work) override;
  ProcessGroup manage(GroupCall call) override;
  void monitored_barrier(const Op& op, const MonitoredBarrierLimits& limits) override;
  StoreReply store(const StoreCall& call) override;
  Observer& observer() override { return *this; }

  // A record without a call: how the program began and ended.
  void note(Record::Kind kind, const std::string& type = {}, const std::string& text = {},
            std::int64_t value = 0);

 private:
  void print(std::string_view text) override;
  void warn(std::string_view text) override;
  void observe(const Observation& observation) override;

  // A call that has not been seen to complete. Tensors are kept: the caller may drop those of async calls.
  struct Call {
    std::int64_t number = 0;
    TensorList results;
    bool from_anyone = false;
  };
  // Works are values that say which call they mean: group, rank, number, and whether it is a message.
  using Key = std::tuple<GroupId, std::int64_t, bool>;

  Record make(Record::Kind kind, std::int64_t call) const;
  Record make_issue(const Op& op, std::int64_t batch);
  std::int64_t log_issue(const Op& op, std::int64_t batch);
  // Logs a call that blocks, from its issue to its end. `run` makes it, and may add to what is logged last.
  template <typename Run>
  auto log_blocking(const Record& issue, Run&& run);
  void log_error(Record::Kind kind, std::int64_t call, const Error& error);
  Work accepted(const Op& op, std::int64_t number, const Work& work);
  static Key key_of(const Work& work) { return {work.group(), work.seq(), work.is_point_to_point()}; }

  RecordSink& sink_;
  const RunClock& clock_;
  std::int64_t calls_ = 0;
  std::map<Key, Call> open_;
  std::map<Key, Rank> sources_;  // of receives from anyone whose caller has not asked yet
};

}  // namespace rollcall::real
