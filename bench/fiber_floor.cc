#include "bench/fiber_floor.h"

#include <sys/mman.h>

#include <bit>
#include <boost/fiber/all.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/expects.h"

namespace rollcall::bench {

namespace {

namespace fibers = boost::fibers;

constexpr std::size_t cache_line = 64;

// All stacks in one mapping that is backed page by page as ranks touch it. A mapping per stack would
// meet the kernel's limit of 65,530; huge pages would back 2 MiB where a rank needs 4 KiB.
class StackArena {
 public:
  explicit StackArena(Rank stacks) : bytes_(static_cast<std::size_t>(stacks) * stack_bytes) {
    void* mapping =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
      throw std::bad_alloc();
    }
    base_ = static_cast<char*>(mapping);
    madvise(base_, bytes_, MADV_NOHUGEPAGE);
  }
  ~StackArena() { munmap(base_, bytes_); }
  StackArena(const StackArena&) = delete;
  StackArena& operator=(const StackArena&) = delete;

  boost::context::stack_context allocate() {
    boost::context::stack_context stack;
    stack.size = stack_bytes;
    stack.sp = base_ + ++used_ * stack_bytes;  // stacks grow downwards
    return stack;
  }

 private:
  static constexpr std::size_t stack_bytes = 64 * 1024;

  std::size_t bytes_;
  std::size_t used_ = 0;
  char* base_;
};

// What Boost.Fiber asks for stacks. They go back all at once, with the arena.
struct ArenaStack {
  StackArena* arena;

  boost::context::stack_context allocate() { return arena->allocate(); }
  void deallocate(boost::context::stack_context&) noexcept {}
};

// A fiber that can run, and where its innermost frame lies.
struct Ready {
  fibers::context* context = nullptr;
  const std::byte* frame = nullptr;  // null: not known
};

// First in, first out. The capacity is a power of two and never grows.
class ReadyRing {
 public:
  explicit ReadyRing(std::size_t capacity) : slots_(std::bit_ceil(capacity)), mask_(slots_.size() - 1) {}

  std::size_t size() const { return tail_ - head_; }
  void push(Ready ready) { slots_[tail_++ & mask_] = ready; }
  Ready pop() { return slots_[head_++ & mask_]; }
  const Ready& peek(std::size_t ahead) const { return slots_[(head_ + ahead) & mask_]; }

 private:
  std::vector<Ready> slots_;
  std::size_t mask_;
  std::size_t head_ = 0;  // head_ and tail_ only count up; the mask makes them indexes
  std::size_t tail_ = 0;
};

// From 100,000 ranks on, a switch costs what its cache misses cost: the fiber's control block at the
// top of its stack, and the frames it returns through. Asking for them two switches early hides most.
//
// Always inlined: GCC 12 takes a function that only prefetches for one without effects and deletes the
// calls to it, silently and for half of the speed.
[[gnu::always_inline]] inline void prefetch(const Ready& ready) {
  constexpr std::size_t control_block_lines = 5;
  constexpr std::size_t lines_below_frame = 5;
  constexpr std::size_t lines_of_frame = 9;
  const auto* control_block = reinterpret_cast<const std::byte*>(ready.context);
  for (std::size_t i = 0; i < control_block_lines; ++i) {
    __builtin_prefetch(control_block + i * cache_line, 1);
  }
  if (ready.frame != nullptr) {
    const std::byte* lowest = ready.frame - lines_below_frame * cache_line;
    for (std::size_t i = 0; i < lines_of_frame; ++i) {
      __builtin_prefetch(lowest + i * cache_line, 1);
    }
  }
}

class PrefetchingFifo final : public fibers::algo::algorithm {
 public:
  explicit PrefetchingFifo(std::size_t capacity) : ring_(capacity) {}

  void make_ready(const Ready& ready) { ring_.push(ready); }

  void awakened(fibers::context* context) noexcept override { ring_.push({context, nullptr}); }
  fibers::context* pick_next() noexcept override {
    if (ring_.size() == 0) {
      return nullptr;
    }
    if (ring_.size() > look_ahead) {
      prefetch(ring_.peek(look_ahead));
    }
    return ring_.pop().context;
  }
  bool has_ready_fibers() const noexcept override { return ring_.size() != 0; }
  void suspend_until(const std::chrono::steady_clock::time_point&) noexcept override {
    expects(false, "ranks that only ever wait for one another never all wait");
  }
  void notify() noexcept override {}

 private:
  static constexpr std::size_t look_ahead = 2;

  ReadyRing ring_;
};

class CountingAllReduce {
 public:
  CountingAllReduce(Rank ranks, PrefetchingFifo& scheduler)
      : scheduler_(scheduler), ranks_(static_cast<std::size_t>(ranks)) {
    waiting_.reserve(ranks_);
  }

  // Not inlined, so that the frame address is the one that the switch will return to.
  [[gnu::noinline]] double operator()(double value) {
    sum_ += value;
    fibers::context* self = fibers::context::active();
    if (waiting_.size() + 1 < ranks_) {
      waiting_.push_back({self, static_cast<const std::byte*>(__builtin_frame_address(0))});
      self->suspend();
    } else {
      wake_everyone();
    }
    return result_;
  }

 private:
  void wake_everyone() {
    result_ = std::exchange(sum_, 0);
    for (const Ready& ready : waiting_) {
      scheduler_.make_ready(ready);
    }
    waiting_.clear();
  }

  PrefetchingFifo& scheduler_;  // owned by Boost.Fiber, until the thread ends
  std::size_t ranks_;
  std::vector<Ready> waiting_;
  double sum_ = 0;
  double result_ = 0;
};

void run_ranks(Rank ranks, std::int64_t collectives, StackArena& arena, Probe& probe) {
  constexpr std::size_t main_and_dispatcher = 2;
  auto* scheduler = new PrefetchingFifo(static_cast<std::size_t>(ranks) + main_and_dispatcher);
  fibers::context::active()->get_scheduler()->set_algo(fibers::algo::algorithm::ptr_t(scheduler));
  CountingAllReduce all_reduce(ranks, *scheduler);

  std::vector<fibers::fiber> fibers_of_ranks;
  fibers_of_ranks.reserve(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) {
    fibers_of_ranks.emplace_back(fibers::launch::post, std::allocator_arg, ArenaStack{&arena}, [&] {
      all_reduce(1);
      probe.started();
      double total = 0;
      for (std::int64_t i = 0; i < collectives; ++i) {
        total += all_reduce(1);
      }
      probe.finished();
      expects(total == static_cast<double>(collectives) * ranks, "every collective sums every rank once");
    });
  }
  for (fibers::fiber& fiber : fibers_of_ranks) {
    fiber.join();
  }
}

}  // namespace

Sample measure_fiber_floor(Rank ranks, std::int64_t collectives) {
  Probe probe(ranks, collectives);
  StackArena arena(ranks);  // outlives the thread: Boost.Fiber frees the last contexts as it ends
  std::thread([&] { run_ranks(ranks, collectives, arena, probe); }).join();
  return probe.sample();
}

}  // namespace rollcall::bench
