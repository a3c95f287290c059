#pragma once

// Runs ranks as fibers on one OS thread, in a deterministic order: first ready, first run.
//
// The interface is narrow on purpose (start, park, make ready, quiescence), so that another kind of context
// switch can replace Boost.Fiber behind it. Only this module includes Boost.Fiber.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/c10d/rank_context.h"

namespace rollcall::sim {

// Thrown out of a parked rank's wait to end it early, so that its destructors run. Not a
// std::exception: a program's own catch clauses let it through.
struct RankAborted {};

// Calls `work` once on each of `count` new threads, and waits for all. Runs started there use their thread and its
// stacks, one after the other; a run started elsewhere gets a thread of its own, which costs more than a small run.
// Rethrows the exception of the first thread, by index, that threw.
void run_on_threads(std::uint32_t count, const std::function<void(std::uint32_t index)>& work);

class StackArena;
struct CaughtExceptions;

class RankScheduler {
 public:
  // `contexts[r]` becomes the current rank whenever rank r runs. Borrowed. `stack_bytes`: of each rank; 0: the default.
  RankScheduler(std::vector<RankContext>& contexts, const std::vector<Rank>& start_order,
                std::size_t stack_bytes = 0);
  RankScheduler(const RankScheduler&) = delete;
  RankScheduler& operator=(const RankScheduler&) = delete;

  // Runs `body` once per rank, in the start order, until every body has returned. Whenever no rank can
  // run, calls `at_quiescence` until it has made some rank ready. `body` must not throw.
  void run(const std::function<void(Rank)>& body, const std::function<void()>& at_quiescence);

  // Called by a rank: sleeps until make_ready is called for it. `hint` is memory that the rank will touch
  // soon after it continues, or null; it is prefetched and never read.
  void park(const void* hint = nullptr);
  // Puts a parked rank at the end of the ready queue.
  void make_ready(Rank rank);

  // Called when the running rank is about to end and was deep in its stack, as after an exception: frees the pages
  // if there are so many ranks that this matters.
  void give_back_stack() const;

  // The rank that is running.
  Rank running() const { return running_; }

 private:
  friend struct Algorithm;

  // Where a parked fiber continues: its context, and what else to prefetch.
  struct Ready {
    void* context = nullptr;
    const char* frame = nullptr;
    const void* hint = nullptr;
    const RankContext* self = nullptr;
  };

  void run_on_this_thread(const std::function<void(Rank)>& body, const std::function<void()>& at_quiescence);
  void enter(Rank rank);
  void push(const Ready& ready) { ring_[tail_++ & mask_] = ready; }

  std::vector<RankContext>& contexts_;
  std::vector<Ready> fibers_;  // by rank
  std::vector<Ready> ring_;    // a power of two; holds every rank at most once
  std::size_t mask_ = 0;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  Rank running_ = -1;
  Rank unfinished_ = 0;
  std::vector<Rank> start_order_;
  std::size_t stack_bytes_;
  StackArena* arena_ = nullptr;         // the thread's
  CaughtExceptions* caught_ = nullptr;  // the thread's
};

}  // namespace rollcall::sim
