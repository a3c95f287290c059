// The interpreter, the part about `parallel`: several threads on one rank.

#include <algorithm>
#include <utility>
#include <variant>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/c10d/rank_context.h"

namespace rollcall::scenario {
namespace {

// True if another rank, or another thread, can notice this instruction. Only before such instructions does it
// matter which thread is next.
bool is_noticed(const Action& next) {
  return !std::holds_alternative<action::Jump>(next) && !std::holds_alternative<action::JumpUnless>(next) &&
         !std::holds_alternative<action::LoopBegin>(next) && !std::holds_alternative<action::LoopNext>(next);
}

class Threads {
 public:
  Threads(RankFrame& frame, const Branches& branches)
      : frame_(frame), had_threads_(std::exchange(this_rank().has_threads, true)) {
    for (const Block& block : branches.blocks) {
      threads_.push_back({block, block.begin, {}});
      skip_unnoticed(threads_.back());
    }
  }

  ~Threads() { this_rank().has_threads = had_threads_; }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  void run() {
    while (true) {
      std::erase_if(threads_, is_done);
      if (threads_.empty()) {
        return;
      }
      std::vector<Thread*> ready;
      for (Thread& thread : threads_) {
        if (thread.waits_for.empty()) {
          ready.push_back(&thread);
        }
      }
      if (ready.empty()) {
        wait_for_any();
        continue;
      }
      Thread& next = *ready[frame_.decide(sim::Decision::Kind::thread, ready.size())];
      step(frame_, next);
      skip_unnoticed(next);
    }
  }

 private:
  void skip_unnoticed(Thread& thread) {
    const auto& code = frame_.program().code;
    while (thread.waits_for.empty() && is_inside(thread) && !is_noticed(code[thread.at].action)) {
      step(frame_, thread);
    }
  }

  static bool is_inside(const Thread& thread) {
    return thread.at >= thread.block.begin && thread.at < thread.block.end;
  }

  // Removes finished calls from a thread's list, and returns true if the thread is done.
  static bool is_done(Thread& thread) {
    Backend& backend = *this_rank().backend;
    while (!thread.waits_for.empty() && finished(backend, thread.waits_for.front())) {
      thread.waits_for.front().wait();  // raises the call's error
      thread.waits_for.erase(thread.waits_for.begin());
    }
    return thread.waits_for.empty() && !is_inside(thread);
  }

  static bool finished(Backend& backend, const Work& work) {
    return work.is_nothing() || backend.is_completed(work);
  }

  void wait_for_any() {
    std::vector<Work> works;
    for (const Thread& thread : threads_) {
      works.push_back(thread.waits_for.front());
    }
    this_rank().backend->wait_any(works);
  }

  RankFrame& frame_;
  bool had_threads_;
  std::vector<Thread> threads_;
};

}  // namespace

void run_threads(RankFrame& frame, const Branches& threads) { Threads(frame, threads).run(); }

}  // namespace rollcall::scenario
