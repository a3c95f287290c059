#pragma once

// One rank's GPU, as the host of an NCCL job sees it: the work that has been launched and has not finished.
//
//   streams   work in the order it was queued. A collective only passes through: its communicator takes it.
//   lanes     one per group, kept in the group's LaunchTable: NCCL's own stream. Collectives of a group run one
//             after the other, in the order in which the host launched them; each starts once its stream has
//             reached it (ProcessGroupNCCL.cpp, syncStream) and the GPU has room.
//
// Pure: it knows neither fibers nor time. The engine launches work, asks what to do next, and reports what finished.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/c10d/op.h"
#include "sim/c10d/stream.h"
#include "sim/match/message_matcher.h"
#include "sim/nccl/launch_table.h"

namespace rollcall::sim {

// First in, first out, in memory that is reused: popped items are overwritten later, not destroyed.
template <typename T>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }
  T& front() { return items_[head_]; }
  const T& front() const { return items_[head_]; }
  void push(T item) { items_.push_back(std::move(item)); }
  void pop() {
    ++head_;
    if (head_ == items_.size()) {
      clear();
    } else if (head_ >= 64 && head_ * 2 > items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }
  void clear() {
    items_.clear();
    head_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t head_ = 0;
};

// Keeps a tensor alive for a call that is queued.
class InUse {
 public:
  explicit InUse(Storage* storage = nullptr) : storage_(storage) {
    if (storage_ != nullptr) {
      storage_->begin_use();
    }
  }
  InUse(InUse&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  InUse& operator=(InUse other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~InUse() {
    if (storage_ != nullptr) {
      storage_->end_use();
    }
  }

 private:
  Storage* storage_;
};

class DeviceQueue {
 public:
  // What the engine has to do before the queue can continue.
  struct Action {
    enum class Kind : std::uint8_t { none, start, post, run_kernel };
    Kind kind = Kind::none;
    LaunchTable* table = nullptr;  // start: the front of its lane
    Rank group_rank = -1;          // start: whose lane
    GroupId group = 0;             // post
    check::MessageId message = check::no_message;
    Stream stream{};  // run_kernel
    Kernel kernel{};  // run_kernel
  };

  // What blocks a stream, or the host: the collective that runs in the group, or a message.
  struct Block {
    GroupId group = 0;
    Rank group_rank = -1;
    std::int64_t seq = -1;
    check::MessageId message = check::no_message;
  };

  // `slots`: how many collective kernels can run at once; 0: any number.
  explicit DeviceQueue(int slots = 0) : slots_(slots) {}

  // The host queues work. launch() returns the number of the collective in its group; the table outlives the queue.
  std::int64_t launch(LaunchTable& table, const Op& op) {
    const bool is_here = steps_ == 0 || is_through(op.stream);
    const std::int64_t seq = table.launch(op, launches_++, is_here);
    ++backlog_;
    may_start_ = may_start_ || (is_here && !table.lane(op.rank).running);
    if (seq == 0 || !is_here) [[unlikely]] {
      enqueue(table, op, seq, is_here);
    }
    if (is_here && !open_messages_.empty()) [[unlikely]] {
      note_overtaken(op.group, {});
    }
    return seq;
  }
  // `turn`: which kernel of its group's stream the message is a part of; those of a batch have the same one. Nothing:
  // its pair of ranks has a communicator of its own (ProcessGroupNCCL.cpp, pointToPoint).
  void launch_message(const Op& op, std::int64_t seq, check::MessageId message,
                      std::optional<std::uint32_t> turn);
  void launch_kernel(Stream stream, const Kernel& kernel);
  void await_collective(Stream stream, GroupId group, std::int64_t seq);
  void await_message(Stream stream, GroupId group, Rank group_rank, std::int64_t seq,
                     check::MessageId message);
  void await_event(Stream stream, const Event& event);
  Event record(Stream stream) const;

  // The next thing to do; none: everything waits for something to finish.
  Action next();
  bool has_next() const { return steps_ > 0 || may_start_; }  // false: next() would be none
  // The collective at the front of a lane is over.
  void finish_collective(LaunchTable& table, Rank group_rank);
  // The same. Returns the place of the collective behind it if that one starts at once, which is the usual case and
  // needs no next(); null otherwise.
  const LaunchTable::Place* advance(LaunchTable& table, Rank group_rank) {
    if (slots_ > 0) [[unlikely]] {
      finish_collective(table, group_rank);  // another lane may be next
      return nullptr;
    }
    --backlog_;
    const LaunchTable::Place* next = table.advance(group_rank);
    running_ -= next == nullptr ? 1 : 0;
    return next;
  }
  void finish_message(GroupId group, std::int64_t seq);
  const Kernel& running_kernel(Stream stream) const;
  void finish_kernel(Stream stream);
  // The rank's process is gone: work that has not started never will.
  void drop_unstarted();

  // True if a message and another call of its group ran beside each other. NCCL runs them one after the other, and if
  // they are large, ranks may wait for each other that did not here.
  bool has_let_overtake() const { return has_let_overtake_; }

  // For the host's waits. An event is named as in the functions above.
  bool has_finished_message(GroupId group, std::int64_t seq) const;
  bool has_passed(const Event& event) const;
  bool is_idle() const;           // nothing queued, nothing running
  bool streams_are_idle() const;  // every stream is done; calls that nothing waits for may still run
  std::size_t backlog() const { return backlog_; }  // things queued

  // What the named wait ultimately waits for. Null: for nothing that depends on other ranks.
  std::optional<Block> blocking(GroupId group, std::int64_t seq) const;
  std::optional<Block> blocking(const Event& event) const;
  std::optional<Block> blocking() const;  // anything that is queued

 private:
  struct Step {
    enum class Kind : std::uint8_t { release, post, kernel, await_collective, await_message, await_event };
    Kind kind = Kind::release;
    Stream awaited{};      // await_event
    bool running = false;  // kernel
    GroupId group = 0;
    Rank group_rank = -1;  // await_message
    check::MessageId message = check::no_message;
    std::int64_t number = 0;  // seq or position
  };
  // A message that was launched and has not finished.
  struct OpenMessage {
    GroupId group = 0;
    std::int64_t seq = 0;
    Rank group_rank = -1;
    check::MessageId message = check::no_message;
    InUse tensor;
    std::optional<std::uint32_t> turn{};
    std::int64_t after = 0;   // collectives of the group that were launched before
    bool may_return = false;  // before its other end has come: a small send
  };
  struct StreamQueue {
    Fifo<Step> steps;
    Fifo<Kernel> kernels;     // of the steps that are kernels: most are not, and every call queues steps
    std::int64_t passed = 0;  // steps that it has completed
  };
  // The rank's lane in a group's table.
  struct LaneRef {
    LaunchTable* table = nullptr;
    Rank member = -1;

    const LaunchTable::Lane& lane() const { return table->lane(member); }
    const LaunchTable::Place& front() const { return table->front(member); }
  };

  bool is_through(Stream stream) const {
    return stream.id >= streams_.size() || streams_[stream.id].steps.empty();
  }
  StreamQueue& stream_of(Stream stream);
  const LaneRef* find_lane(GroupId group) const;
  bool has_finished(GroupId group, std::int64_t seq) const;
  void push(Stream stream, const Step& step);
  void enqueue(LaunchTable& table, const Op& op, std::int64_t seq, bool is_here);
  void make_ready(const LaneRef& lane, std::int64_t seq);
  void note_overtaken(GroupId group, std::optional<std::uint32_t> turn);
  void note_posted(const Step& step);
  bool is_over(const Step& step) const;
  std::optional<Action> step_streams();
  std::optional<Action> start_a_collective();
  std::optional<Block> blocking(const StreamQueue& queue, int depth) const;
  std::optional<Block> running_block() const;
  template <typename Predicate>
  const LaneRef* first_launched(Predicate&& counts) const;

  // The members that every call touches come first.
  std::size_t steps_ = 0;  // queued on all streams
  std::size_t backlog_ = 0;
  int slots_;
  int running_ = 0;
  std::uint32_t launches_ = 0;
  bool has_let_overtake_ = false;
  bool may_start_ = false;            // something has changed since no collective could start
  std::vector<StreamQueue> streams_;  // by id
  std::vector<LaneRef> lanes_;        // in order of first use
  std::vector<OpenMessage> open_messages_;
};

}  // namespace rollcall::sim
