// The interpreter, the part about `parallel`: several threads on one rank.

#include <algorithm>
#include <utility>
#include <variant>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/c10d/rank_context.h"

namespace rollcall::scenario {
namespace {

// The variables that the statements of a thread set, apart from the counters of its loops.
std::vector<SlotIndex> variables_set(const Program& program, const Block& block) {
  std::vector<SlotIndex> set;
  const auto add = [&](SlotIndex variable) {
    if (variable != no_slot) {
      set.push_back(variable);
    }
  };
  for (Address at = block.begin; at < block.end; ++at) {
    const Action& action = program.code[at].action;
    if (const auto* item = std::get_if<action::Item>(&action)) {
      add(item->variable);
    } else if (const auto* store = std::get_if<action::CallStore>(&action)) {
      add(program.store_statements[store->call].variable);
    } else if (const auto* exchange = std::get_if<action::Exchange>(&action)) {
      add(program.messages[exchange->message].source);
    }
  }
  return set;
}

bool reads_any(const Program& program, const Operand& operand, const std::vector<SlotIndex>& variables) {
  return operand.kind == Operand::Kind::expression && std::ranges::any_of(variables, [&](SlotIndex variable) {
           return program.expressions[operand.expression].mentions(variable);
         });
}

// True if another rank, or another thread, can notice this instruction, or if it depends on what other threads do
// (`shared`: the variables that they set). Only before such instructions does it matter which thread is next.
bool is_noticed(const Program& program, const Action& next, const std::vector<SlotIndex>& shared) {
  if (const auto* jump = std::get_if<action::JumpUnless>(&next)) {
    return reads_any(program, jump->condition, shared);
  }
  if (const auto* begin = std::get_if<action::LoopBegin>(&next)) {
    const Loop& loop = program.loops[begin->loop];
    return reads_any(program, loop.first, shared) || reads_any(program, loop.last, shared);
  }
  return !std::holds_alternative<action::Jump>(next) && !std::holds_alternative<action::LoopNext>(next);
}

struct OwnThread : Thread {
  std::vector<SlotIndex> shared;  // the variables that other threads set
};

class Threads {
 public:
  Threads(RankFrame& frame, const Branches& branches)
      : frame_(frame), had_threads_(std::exchange(this_rank().has_threads, true)) {
    std::vector<std::vector<SlotIndex>> set;
    for (const Block& block : branches.blocks) {
      set.push_back(variables_set(frame.program(), block));
    }
    for (std::size_t index = 0; index < branches.blocks.size(); ++index) {
      const Block& block = branches.blocks[index];
      OwnThread thread{{block, block.begin, {}}, {}};
      for (std::size_t other = 0; other < set.size(); ++other) {
        if (other != index) {
          thread.shared.insert(thread.shared.end(), set[other].begin(), set[other].end());
        }
      }
      threads_.push_back(std::move(thread));
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
      std::vector<OwnThread*> ready;
      for (OwnThread& thread : threads_) {
        if (thread.waits_for.empty()) {
          ready.push_back(&thread);
        }
      }
      if (ready.empty()) {
        wait_for_any();
        continue;
      }
      OwnThread& next = *ready[frame_.decide(sim::Decision::Kind::thread, ready.size())];
      step(frame_, next);
      skip_unnoticed(next);
    }
  }

 private:
  void skip_unnoticed(OwnThread& thread) {
    const auto& code = frame_.program().code;
    while (thread.waits_for.empty() && is_inside(thread) &&
           !is_noticed(frame_.program(), code[thread.at].action, thread.shared)) {
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
  std::vector<OwnThread> threads_;
};

}  // namespace

void run_threads(RankFrame& frame, const Branches& threads) { Threads(frame, threads).run(); }

}  // namespace rollcall::scenario
