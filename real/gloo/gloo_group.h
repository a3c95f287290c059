#pragma once

// GlooGroup: one process group on Gloo, built like torch's ProcessGroupGloo: a context with connections to every
// other member, a counter that numbers the collectives, and two threads that run them in the order in which
// they were issued. The caller posts sends and receives, which are matched by the caller's tag.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include "real/gloo/gloo_call.h"

namespace rollcall::real {

class GlooGroup {
 public:
  // `context` is connected. Operations throw Error; LostPeerError if the transport failed.
  explicit GlooGroup(std::shared_ptr<gloo::Context> context);
  // Must not run while an operation hangs: a process that gives up leaves by _exit.
  ~GlooGroup();
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  Rank size() const { return context_->size; }

  // Queues a collective. Returns its number, which is also its tag: collectives count from 0.
  std::int64_t start(const Op& op, const TorchTraits& torch);
  // Blocks until it is done and its results are in the tensors. If it failed, throws its error, every time.
  void wait(std::int64_t number);
  bool is_completed(std::int64_t number);
  // Writes the results of everything that has completed meanwhile. Called on the caller's thread, before it
  // uses tensors.
  void deliver_completed();

  // Blocks until all members have arrived: the group's first rank hears from all others, then tells them. Throws
  // LostPeerError with torch's texts; with `wait_all_ranks`, the text names all missing ranks.
  void monitored_barrier(Duration timeout, bool wait_all_ranks);

  // Posts a send or a receive. Returns its number among the messages of this rank and group.
  std::int64_t post(const Op& op);
  void wait_message(std::int64_t number);
  // Frees its buffer, with which Gloo forgets the message. Returns false if it has been waited for.
  bool drop_message(std::int64_t number);
  bool is_message_completed(std::int64_t number) const { return !messages_.contains(number); }
  // The source, as a rank of the group, of a receive from any source that has been waited for. Asked once.
  Rank take_source(std::int64_t number);

 private:
  struct Task {
    std::shared_ptr<GlooCall> call;
    std::shared_ptr<GlooCall> before;  // on the same tensor, and still in progress when this was issued
    std::int64_t before_number = -1;
    std::int64_t number = 0;
    bool waits_for_prior = false;  // a barrier runs when everything issued before it is done
    bool done = false;
    std::exception_ptr error;
  };
  struct Message {
    std::vector<std::byte> memory;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    Tensor target;  // a receive's
    bool from_anyone = false;
  };

  void work();
  void run(Task& task);
  bool prior_done(std::int64_t number) const;
  bool is_done(std::int64_t number) const;
  void finish(std::map<std::int64_t, Task>::iterator task);

  std::shared_ptr<gloo::Context> context_;
  std::int64_t collectives_ = 0;
  std::int64_t posted_ = 0;
  std::map<std::int64_t, Message> messages_;  // by number; touched by the caller's thread only
  std::map<std::int64_t, Rank> sources_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable queued_;
  std::condition_variable done_;
  std::deque<std::int64_t> queue_;
  std::map<std::int64_t, Task> tasks_;  // by number; until delivered. Addresses are stable
  bool stopping_ = false;
  std::array<std::thread, 2> threads_;
};

}  // namespace rollcall::real
