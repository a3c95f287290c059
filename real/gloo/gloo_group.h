#pragma once

// GlooGroup: one process group on Gloo, as torch's ProcessGroupGloo is one: a context of connections to every
// other member, a counter that numbers the collectives, and two threads that run them in the order in which
// they were issued. Sends and receives are posted by the caller and matched by the caller's tag.

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
  // `context` is connected. Errors of operations are Error; LostPeerError where the transport failed.
  explicit GlooGroup(std::shared_ptr<gloo::Context> context);
  // Must not be reached while an operation hangs: a process that gives up leaves by _exit.
  ~GlooGroup();
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  Rank size() const { return context_->size; }

  // Queues a collective. Returns its number, which is also its tag: collectives count from 0.
  std::int64_t start(const Op& op, const TorchTraits& torch);
  // Blocks until it is done and its results are in the tensors. Throws what it failed of, every time.
  void wait(std::int64_t number);
  bool is_completed(std::int64_t number);
  // Writes the results of everything that has completed meanwhile. Called on the caller's thread, before it
  // looks at tensors.
  void deliver_completed();

  // Blocks until everybody has come: the group's first rank hears from all others, then tells them. Throws
  // LostPeerError with torch's texts; `wait_all_ranks`: with everybody's name who is missing.
  void monitored_barrier(Duration timeout, bool wait_all_ranks);

  // Posts a send or a receive. Returns its number among the messages of this rank and group.
  std::int64_t post(const Op& op);
  void wait_message(std::int64_t number);
  bool is_message_completed(std::int64_t number) const { return !messages_.contains(number); }
  // Of a receive from anyone that has been waited for, inside the group. Asked once.
  Rank take_source(std::int64_t number);

 private:
  struct Task {
    std::shared_ptr<GlooCall> call;
    std::shared_ptr<GlooCall> before;  // still under way when this was issued, on the same tensor
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

  void hear_from_all(std::uint64_t slot, Duration timeout, bool wait_all_ranks);
  void tell_all(std::uint64_t slot, Duration timeout);
  void report_to_root(std::uint64_t there, std::uint64_t back, Duration timeout);

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

  std::mutex mutex_;  // guards what follows
  std::condition_variable queued_;
  std::condition_variable done_;
  std::deque<std::int64_t> queue_;
  std::map<std::int64_t, Task> tasks_;  // by number; until delivered. Addresses are stable
  bool stopping_ = false;
  std::array<std::thread, 2> threads_;
};

}  // namespace rollcall::real
