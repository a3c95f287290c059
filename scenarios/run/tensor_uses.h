#pragma once

// TensorUses: the named tensors of one rank that calls still work on, as far as the program has made sure that they are
// done.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/program/program.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/op.h"
#include "sim/c10d/stream.h"
#include "sim/c10d/work.h"
#include "sim/tensor/tensor.h"

namespace rollcall::scenario {

// Which work of one rank's GPU runs before which, as far as its streams and events say. Work on one stream runs in the
// order in which it was queued. Streams are ordered by the waits between them alone, however long the work happens to
// take in a run. Each stream has a vector clock: the last work of every stream that is over before its next work.
class StreamOrder {
 public:
  // A piece of work: the position-th on its stream. Counts from 1.
  struct Point {
    Stream stream;
    std::int64_t position = 0;
  };

  // Queues work on the stream.
  Point queue(Stream stream);
  // True if work that is queued on `stream` from now on begins after `point` is over.
  bool is_over(Point point, Stream stream) const;

  void record(std::size_t event, Stream stream);
  // An event that was never recorded is complete, as in CUDA.
  void await_event(std::size_t event, Stream stream);
  void await_stream(Stream awaited, Stream stream);
  // The host waits for the stream, so everything that it queues later comes after that.
  void await_on_host(Stream stream);

 private:
  using Clock = std::vector<std::int64_t>;  // positions by stream; 0 where it is too short

  static std::int64_t at(const Clock& clock, Stream stream);
  static void advance(Clock& clock, const Clock& other);
  Clock& clock_of(Stream stream);

  std::vector<Clock> streams_;
  std::vector<Clock> events_;
  Clock host_;
};

// A tensor, or a list of them, that a statement names.
struct TensorKey {
  SlotIndex slot = no_slot;
  bool is_list = false;
  friend bool operator==(const TensorKey&, const TensorKey&) = default;
};

// What runs calls in the order in which they were issued: on nccl the communicator of a group, or that of two ranks for
// messages outside a batch (ProcessGroupNCCL.cpp, getKeySendRecv). Gloo has none: each group has two threads.
struct CallQueue {
  GroupId group = world_group;
  Rank peer = -1;  // of a message; -1: all others
  friend bool operator==(const CallQueue&, const CallQueue&) = default;
};

// A named tensor that a call works on.
struct TensorUse {
  TensorKey tensor;
  bool writes = false;       // otherwise the call only reads it
  SlotIndex work = no_slot;  // its handle; no_slot: it has none
  Op op{};                   // the call, without tensors
  std::int64_t seq = 0;
  std::optional<CallQueue> queue{};
  std::vector<StreamOrder::Point> waits{};  // on streams that are ordered after the call
};

// What else is known of the use once its call, given `argument`, was issued as `work`.
TensorUse with_work(TensorUse use, const Work& work, const Tensor& argument);

class TensorUses {
 public:
  // `has_streams`: a wait orders only the stream that waits, and there are several.
  explicit TensorUses(bool has_streams) : has_streams_(has_streams) {}

  bool has_streams() const { return has_streams_; }
  bool empty() const { return uses_.empty(); }

  // A call, issued on `stream`, works on the tensor until its handle is waited for.
  void add(TensorUse use, Stream stream);
  // The same for a call that the stream has waited for already.
  void add_awaited(TensorUse use, Stream stream);
  // The handle was waited for on `stream`.
  void await(SlotIndex work, Stream stream);
  // The host waits for everything.
  void await_all() { uses_.clear(); }

  // A call that may still be at work when work on `stream` touches the tensor; null if there is none. Work of a call
  // comes after that of the calls before it in its queue.
  const TensorUse* find_open(TensorKey tensor, Observation::Access access, Stream stream,
                             const std::optional<CallQueue>& queue = std::nullopt) const;

  // What orders the streams; without streams, nobody asks.
  StreamOrder& order() { return order_; }

 private:
  bool is_over(const TensorUse& use, Stream stream) const;

  std::vector<TensorUse> uses_;
  StreamOrder order_;
  bool has_streams_;
};

}  // namespace rollcall::scenario
