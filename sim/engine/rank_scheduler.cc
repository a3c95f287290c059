#include "sim/engine/rank_scheduler.h"

#include <cxxabi.h>
#include <bit>
#include <exception>
#include <thread>

#include <boost/fiber/algo/algorithm.hpp>
#include <boost/fiber/context.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/scheduler.hpp>

#include "sim/dist/expects.h"
#include "sim/engine/stack_arena.h"

namespace rollcall::sim {
namespace {

namespace fibers = boost::fibers;

// libstdc++ keeps the exceptions being handled per thread, not per stack: two ranks that suspend
// inside a catch clause would rethrow each other's. This is the layout behind __cxa_get_globals
// (Itanium C++ ABI, "Caught Exception Stack").
struct CaughtExceptions {
  void* stack;
  unsigned int uncaught;
};

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

struct RankScheduler::Impl {
  explicit Impl(std::size_t ranks) : arena(ranks) {}

  StackArena arena;
  CaughtExceptions* caught = nullptr;     // the thread's
  fibers::context* main = nullptr;        // the thread's own context: runs at quiescence
  fibers::context* dispatcher = nullptr;  // Boost's; only needed to free finished fibers
  bool main_is_ready = false;
  bool dispatcher_is_ready = false;
  bool prefer_dispatcher = false;
};

// Boost.Fiber's scheduling hook over the scheduler's ring. Nothing ready and nothing to free is the
// quiescence signal: the main context runs then, and only then.
struct Algorithm final : fibers::algo::algorithm {
  explicit Algorithm(RankScheduler& owner) : scheduler(owner) {}

  void awakened(fibers::context* context) noexcept override {
    RankScheduler::Impl& impl = *scheduler.impl_;
    if (context->is_context(fibers::type::dispatcher_context)) {
      impl.dispatcher = context;
      impl.dispatcher_is_ready = true;
    } else if (context == impl.main) {
      impl.main_is_ready = true;
    } else {
      scheduler.push({context, nullptr, nullptr, nullptr});
    }
  }

  fibers::context* pick_next() noexcept override {
    RankScheduler::Impl& impl = *scheduler.impl_;
    if (scheduler.head_ != scheduler.tail_) {
      prefetch_ahead();
      return static_cast<fibers::context*>(scheduler.ring_[scheduler.head_++ & scheduler.mask_].context);
    }
    if (impl.dispatcher_is_ready && impl.prefer_dispatcher) {
      impl.dispatcher_is_ready = false;
      return impl.dispatcher;
    }
    if (impl.main_is_ready) {
      impl.main_is_ready = false;
      return impl.main;
    }
    impl.dispatcher_is_ready = false;
    return impl.dispatcher;
  }

  // A rank's cache lines are cold by the time its turn comes again when there are many ranks; asking for
  // them a few switches early hides most of the miss. The context lies at the top of the stack, the
  // saved frame where park() noted it. Forced inline: GCC finds a function of prefetches free of side
  // effects and drops calls to it.
  [[gnu::always_inline]] void prefetch_ahead() const noexcept {
    constexpr std::size_t ahead = 3;
    constexpr int line = 64;
    if (scheduler.tail_ - scheduler.head_ <= ahead) {
      return;
    }
    const RankScheduler::Ready& soon = scheduler.ring_[(scheduler.head_ + ahead) & scheduler.mask_];
    const char* context = static_cast<const char*>(soon.context);
#pragma GCC unroll 8
    for (int i = 0; i < 5; ++i) {
      __builtin_prefetch(context + i * line, 1);
    }
    __builtin_prefetch(soon.hint, 1);  // prefetching null is harmless
    __builtin_prefetch(soon.self, 1);
    if (soon.frame != nullptr) {
#pragma GCC unroll 16
      for (int i = -4; i < 10; ++i) {
        __builtin_prefetch(soon.frame + i * line, 1);
      }
    }
  }

  // Boost moves what is ready into a successor algorithm through this; the dispatcher counts.
  bool has_ready_fibers() const noexcept override {
    const RankScheduler::Impl& impl = *scheduler.impl_;
    return scheduler.head_ != scheduler.tail_ || impl.main_is_ready || impl.dispatcher_is_ready;
  }

  void suspend_until(const std::chrono::steady_clock::time_point&) noexcept override {}
  void notify() noexcept override {}

  RankScheduler& scheduler;
};

RankScheduler::RankScheduler(std::vector<RankContext>& contexts, const std::vector<Rank>& start_order)
    : contexts_(contexts),
      fibers_(contexts.size()),
      ring_(std::bit_ceil(contexts.size() + 4)),
      mask_(ring_.size() - 1),
      start_order_(start_order),
      impl_(std::make_unique<Impl>(contexts.size())) {}

RankScheduler::~RankScheduler() = default;

void RankScheduler::run(const std::function<void(Rank)>& body, const std::function<void()>& at_quiescence) {
  // A thread of its own: Boost.Fiber keeps one scheduler per thread for the thread's whole life, and the
  // next run must not inherit this one's.
  std::exception_ptr failure;
  std::thread thread([&] {
    try {
      run_on_this_thread(body, at_quiescence);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  thread.join();
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
}

void RankScheduler::run_on_this_thread(const std::function<void(Rank)>& body,
                                       const std::function<void()>& at_quiescence) {
  impl_->main = fibers::context::active();
  impl_->caught = &caught_exceptions();
  impl_->main->get_scheduler()->set_algo(fibers::algo::algorithm::ptr_t(new Algorithm(*this)));
  unfinished_ = static_cast<Rank>(contexts_.size());
  for (const Rank rank : start_order_) {
    fibers::fiber(fibers::launch::post, std::allocator_arg,
                  ArenaStack{&impl_->arena, static_cast<std::size_t>(rank)},
                  [this, rank, &body] {
                    enter(rank);
                    body(rank);
                    --unfinished_;
                  })
        .detach();
  }
  while (true) {
    impl_->main_is_ready = true;
    impl_->main->suspend();  // back when every rank is parked or done
    detail::current_rank = nullptr;
    running_ = -1;
    if (unfinished_ == 0) {
      break;
    }
    while (head_ == tail_) {  // an event need not wake anybody
      at_quiescence();
    }
  }
  impl_->prefer_dispatcher = true;  // once round the dispatcher, which frees the finished fibers
  impl_->main->yield();
}

void RankScheduler::enter(Rank rank) {
  const auto index = static_cast<std::size_t>(rank);
  fibers_[index].context = fibers::context::active();
  fibers_[index].self = &contexts_[index];
  running_ = rank;
  detail::current_rank = &contexts_[index];
#ifndef NDEBUG
  impl_->arena.arm(index);
#endif
}

// Not inlined, so that the frame address is that of the frame the switch saves. Nothing may be cached
// across the switch but locals.
[[gnu::noinline]] void RankScheduler::park(const void* hint) {
  const Rank rank = running_;
  Ready& fiber = fibers_[static_cast<std::size_t>(rank)];
  fiber.frame = static_cast<const char*>(__builtin_frame_address(0));
  fiber.hint = hint;
#ifndef NDEBUG
  expects(impl_->arena.is_intact(static_cast<std::size_t>(rank)), "a rank program fits its stack");
#endif
  CaughtExceptions& caught = *impl_->caught;
  const CaughtExceptions mine = caught;
  if (mine.stack != nullptr || mine.uncaught != 0) [[unlikely]] {
    caught = {};
  }
  static_cast<fibers::context*>(fiber.context)->suspend();
  if (mine.stack != nullptr || mine.uncaught != 0) [[unlikely]] {
    caught = mine;
  }
  running_ = rank;
  detail::current_rank = &contexts_[static_cast<std::size_t>(rank)];
}

[[gnu::noinline]] void RankScheduler::give_back_stack() const {
  impl_->arena.give_back(static_cast<std::size_t>(running_), __builtin_frame_address(0));
}

void RankScheduler::make_ready(Rank rank) { push(fibers_[static_cast<std::size_t>(rank)]); }

}  // namespace rollcall::sim
