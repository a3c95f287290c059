#include "sim/fibers/rank_scheduler.h"

#include <cxxabi.h>
#include <algorithm>
#include <bit>
#include <exception>
#include <memory>
#include <thread>

#include <boost/fiber/algo/algorithm.hpp>
#include <boost/fiber/context.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/scheduler.hpp>

#include "sim/base/expects.h"
#include "sim/fibers/overflow_watch.h"
#include "sim/fibers/stack_arena.h"

namespace rollcall::sim {

// libstdc++ keeps the exceptions being handled per thread, not per stack: two ranks that suspend
// inside a catch clause would rethrow each other's. This is the layout behind __cxa_get_globals
// (Itanium C++ ABI, "Caught Exception Stack").
struct CaughtExceptions {
  void* stack;
  unsigned int uncaught;
};

namespace {

namespace fibers = boost::fibers;

CaughtExceptions& caught_exceptions() {
  return *reinterpret_cast<CaughtExceptions*>(abi::__cxa_get_globals());
}

// Hands out the arena's stacks in order. Boost.Fiber destroys a fiber on its own stack's behalf, and
// the arena frees them all at once.
struct ArenaStack {
  const StackArena* arena;
  std::size_t index;

  boost::context::stack_context allocate() {
    const StackArena::Stack stack = arena->stack(index);
    boost::context::stack_context context;
    context.sp = stack.top;
    context.size = stack.bytes;
    return context;
  }
  void deallocate(boost::context::stack_context&) noexcept {}
};

}  // namespace

// Boost.Fiber's scheduling hook over the ring of the scheduler that runs. The main context runs at quiescence only:
// when no rank is ready and there is nothing to free.
struct Algorithm final : fibers::algo::algorithm {
  void awakened(fibers::context* context) noexcept override {
    if (context->is_context(fibers::type::dispatcher_context)) {
      dispatcher = context;
      dispatcher_is_ready = true;
    } else if (context == main) {
      main_is_ready = true;
    } else {
      scheduler->push({context, nullptr, nullptr, nullptr});
    }
  }

  fibers::context* pick_next() noexcept override {
    if (scheduler != nullptr && scheduler->head_ != scheduler->tail_) {
      prefetch_ahead();
      return static_cast<fibers::context*>(scheduler->ring_[scheduler->head_++ & scheduler->mask_].context);
    }
    if (dispatcher_is_ready && prefer_dispatcher) {
      dispatcher_is_ready = false;
      return dispatcher;
    }
    if (main_is_ready) {
      main_is_ready = false;
      return main;
    }
    dispatcher_is_ready = false;
    return dispatcher;
  }

  // With many ranks, a rank's cache lines are cold by the time its turn comes again; prefetching
  // them a few switches early hides most of the miss. The context is at the top of the stack, the
  // saved frame where park() noted it. Forced inline: GCC considers a function of prefetches free of side
  // effects and drops calls to it.
  [[gnu::always_inline]] void prefetch_ahead() const noexcept {
    constexpr std::size_t ahead = 3;
    constexpr int line = 64;
    if (scheduler->tail_ - scheduler->head_ <= ahead) {
      return;
    }
    const RankScheduler::Ready& soon = scheduler->ring_[(scheduler->head_ + ahead) & scheduler->mask_];
    const char* context = static_cast<const char*>(soon.context);
    __builtin_prefetch(context + sizeof(fibers::context) - 1, 1);  // Boost's own saved state comes last
    __builtin_prefetch(soon.hint, 1);                              // prefetching null is harmless
    __builtin_prefetch(soon.self, 1);
    if (soon.frame != nullptr) {
#pragma GCC unroll 16
      for (int i = -4; i < 7; ++i) {
        __builtin_prefetch(soon.frame + i * line, 1);
      }
    }
  }

  // Boost asks this when it moves ready fibers into a successor algorithm; the dispatcher counts.
  bool has_ready_fibers() const noexcept override {
    const bool has_ranks = scheduler != nullptr && scheduler->head_ != scheduler->tail_;
    return has_ranks || main_is_ready || dispatcher_is_ready;
  }

  void suspend_until(const std::chrono::steady_clock::time_point&) noexcept override {}
  void notify() noexcept override {}

  RankScheduler* scheduler = nullptr;     // the one that runs; null between two runs
  fibers::context* main = nullptr;        // the thread's own context: runs at quiescence
  fibers::context* dispatcher = nullptr;  // Boost's; only needed to free finished fibers
  bool main_is_ready = false;
  bool dispatcher_is_ready = false;
  bool prefer_dispatcher = false;
};

namespace {

// What a thread keeps from one run to the next. Boost.Fiber has one scheduler per thread for the thread's lifetime.
struct FiberThread {
  FiberThread() {
    algorithm->main = fibers::context::active();
    algorithm->main->get_scheduler()->set_algo(fibers::algo::algorithm::ptr_t(algorithm));
  }

  StackArena& arena_for(std::size_t ranks, std::size_t stack_bytes) {
    const bool is_guarded = stacks <= StackArena::guarded_max;
    if (stacks < ranks || bytes_asked != stack_bytes || (!is_guarded && ranks <= StackArena::guarded_max)) {
      arena.reset();
      arena = std::make_unique<StackArena>(ranks, stack_bytes);
      stacks = ranks;
      bytes_asked = stack_bytes;
    }
    overflow_watch.look_at(*arena);
    return *arena;
  }

  Algorithm* algorithm = new Algorithm;  // owned by Boost
  std::unique_ptr<StackArena> arena;
  std::size_t stacks = 0;
  std::size_t bytes_asked = 0;
  OverflowWatch overflow_watch;
};

thread_local FiberThread* fiber_thread = nullptr;  // the calling thread's; null if it is not a fiber thread

}  // namespace

void run_on_threads(std::uint32_t count, const std::function<void(std::uint32_t index)>& work) {
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::jthread> threads;  // if one cannot be started, the others are joined
  for (std::uint32_t index = 0; index < count; ++index) {
    threads.emplace_back([&, index] {
      try {
        FiberThread self;
        fiber_thread = &self;
        work(index);
        fiber_thread = nullptr;
      } catch (...) {
        failures[index] = std::current_exception();
      }
    });
  }
  std::ranges::for_each(threads, &std::jthread::join);
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) {
      std::rethrow_exception(failure);
    }
  }
}

RankScheduler::RankScheduler(std::vector<RankContext>& contexts, const std::vector<Rank>& start_order,
                             std::size_t stack_bytes)
    : contexts_(contexts),
      fibers_(contexts.size()),
      ring_(std::bit_ceil(contexts.size() + 4)),
      mask_(ring_.size() - 1),
      start_order_(start_order),
      stack_bytes_(stack_bytes) {}

void RankScheduler::run(const std::function<void(Rank)>& body, const std::function<void()>& at_quiescence) {
  // A rank program that itself runs a simulation is on a fiber thread as well, but not between two runs.
  const bool is_free = fiber_thread != nullptr && fiber_thread->algorithm->scheduler == nullptr;
  if (is_free) {
    run_on_this_thread(body, at_quiescence);
  } else {
    run_on_threads(1, [&](std::uint32_t) { run_on_this_thread(body, at_quiescence); });
  }
}

void RankScheduler::run_on_this_thread(const std::function<void(Rank)>& body,
                                       const std::function<void()>& at_quiescence) {
  Algorithm& algorithm = *fiber_thread->algorithm;
  arena_ = &fiber_thread->arena_for(contexts_.size(), stack_bytes_);
  algorithm.scheduler = this;
  algorithm.prefer_dispatcher = false;
  caught_ = &caught_exceptions();
  unfinished_ = static_cast<Rank>(contexts_.size());
  for (const Rank rank : start_order_) {
    fibers::fiber(fibers::launch::post, std::allocator_arg,
                  ArenaStack{arena_, static_cast<std::size_t>(rank)},
                  [this, rank, &body] {
                    enter(rank);
                    body(rank);
                    --unfinished_;
                  })
        .detach();
  }
  while (true) {
    algorithm.main_is_ready = true;
    algorithm.main->suspend();  // back when every rank is parked or done
    detail::current_rank = nullptr;
    running_ = -1;
    if (unfinished_ == 0) {
      break;
    }
    while (head_ == tail_) {  // an event need not wake a rank
      at_quiescence();
    }
  }
  algorithm.prefer_dispatcher = true;  // the dispatcher runs once and frees the finished fibers
  algorithm.main->yield();
  algorithm.scheduler = nullptr;
}

void RankScheduler::enter(Rank rank) {
  const auto index = static_cast<std::size_t>(rank);
  fibers_[index].context = fibers::context::active();
  fibers_[index].self = &contexts_[index];
  running_ = rank;
  detail::current_rank = &contexts_[index];
#ifndef NDEBUG
  arena_->arm(index);
#endif
}

// Not inlined, so that the frame address is that of the frame that the switch saves. Only locals may be cached
// across the switch.
[[gnu::noinline]] void RankScheduler::park(const void* hint) {
  const Rank rank = running_;
  Ready& fiber = fibers_[static_cast<std::size_t>(rank)];
  fiber.frame = static_cast<const char*>(__builtin_frame_address(0));
  fiber.hint = hint;
#ifndef NDEBUG
  expects(arena_->is_intact(static_cast<std::size_t>(rank)), "a rank program fits its stack");
#endif
  CaughtExceptions& caught = *caught_;
  const CaughtExceptions mine = caught;
  if (mine.stack != nullptr || mine.uncaught != 0) [[unlikely]] {
    caught = {};
  }
  fiber_thread->algorithm->pick_next()->resume();  // what context::suspend() does three calls deeper
  if (mine.stack != nullptr || mine.uncaught != 0) [[unlikely]] {
    caught = mine;
  }
  running_ = rank;
  detail::current_rank = &contexts_[static_cast<std::size_t>(rank)];
}

[[gnu::noinline]] void RankScheduler::give_back_stack() const {
  // The call into the kernel can cost more than the rest of a rank's run, so it must save much memory.
  constexpr std::size_t kept_max = 32'768;  // stacks of which a page each may stay: 128 MiB
  if (contexts_.size() <= kept_max) {
    return;
  }
  arena_->give_back(static_cast<std::size_t>(running_), __builtin_frame_address(0));
}

void RankScheduler::make_ready(Rank rank) { push(fibers_[static_cast<std::size_t>(rank)]); }

}  // namespace rollcall::sim
