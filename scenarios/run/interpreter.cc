#include "scenarios/run/interpreter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <variant>

#include <fmt/core.h>

#include "scenarios/format/scenario.h"
#include "scenarios/run/rank_frame.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/stream.h"

namespace rollcall::scenario {
namespace {

// The only element, as a variable stores it.
std::int64_t whole_number(const Tensor& tensor) {
  if (!is_floating(tensor.dtype())) {
    return tensor.item_integer();
  }
  constexpr double limit = 9007199254740992.0;  // 2^53: above it not every whole number is a double
  const double value = tensor.item();
  if (std::trunc(value) != value || std::fabs(value) > limit) {
    throw ValueError(fmt::format("item: {} is not an integer, and variables only hold integers", value));
  }
  return static_cast<std::int64_t>(value);
}

// Executes one instruction after another. An overload that returns nothing goes on to the next in the list; the others
// return its address.
class Interpreter {
 public:
  // With `unfinished`, calls that would block are added to it instead.
  explicit Interpreter(RankFrame& frame, std::vector<Work>* unfinished = nullptr)
      : frame_(frame), program_(frame.program()), unfinished_(unfinished) {}

  Address run(const Block& block) {
    at_ = block.begin;
    try {
      while (at_ >= block.begin && at_ < block.end) {
        frame_.rest(at_);
        at_ = execute(program_.code[at_].action);
      }
    } catch (const Error&) {
      if (!frame_.raised_at) {  // the innermost block knows best
        frame_.raised_at = site();
      }
      throw;
    }
    return at_;
  }

  Address step(Address at) {
    at_ = at;
    return execute(program_.code[at].action);
  }

  void operator()(const action::Collect& collect) {
    run_collective(frame_, program_.collectives[collect.call], site(), unfinished_);
  }

  void operator()(const action::Exchange& exchange) {
    run_message(frame_, program_.messages[exchange.message], site(), unfinished_);
  }

  void operator()(const action::ExchangeBatch& exchange) {
    run_batch(frame_, program_.batches[exchange.batch], site());
  }

  void operator()(const action::Coalesce& coalesce) {
    run_coalesced(frame_, program_.coalesced[coalesce.calls], site());
  }

  void operator()(const action::Checkpoint& checkpoint) {
    run_checkpoint(frame_, program_.checkpoint_calls[checkpoint.call], site());
  }

  void operator()(const action::ExchangeObjects& exchange) {
    run_objects(frame_, program_.object_calls[exchange.call], site());
  }

  void operator()(const action::Wait& wait) {
    const NamedStreamScope stream(frame_, wait.stream);
    const std::vector<Work>& works = frame_.issued_works(wait.work);
    if (std::ranges::any_of(works, &Work::is_nothing)) {
      throw Error("AttributeError", "'NoneType' object has no attribute 'wait'");
    }
    if (wait.timeout > 0) {
      for (const Work& work : works) {
        work.wait(wait.timeout);
      }
    }
    if (wait.timeout == 0 || this_rank().backend->traits().queues_calls) {
      block_in(works);  // on gloo, a message cannot be waited for twice
    }
    if (unfinished_ == nullptr) {
      block_host(frame_);
    }
    frame_.release(wait.work);
  }

  void operator()(const action::Drop& drop) { frame_.drop_works(drop.work); }

  void operator()(const action::Synchronize&) {
    block_in(frame_.take_open_works());
    rollcall::synchronize();
    frame_.finish_coalesced();
  }

  void operator()(const action::Touch& touch) {
    if (!touch.tensor.is_list) {
      frame_.read(touch.tensor);  // it must exist
    }
    frame_.touch(key_of(touch.tensor), touch.access, site());
    if (touch.access == Observation::Access::free) {
      if (touch.tensor.is_list) {
        frame_.lists[touch.tensor.slot].clear();
      } else {
        frame_.tensors[touch.tensor.slot] = {};
      }
    }
  }

  Address operator()(const action::Choose& choose) {
    const Branches& branches = program_.branches[choose.branches];
    run_block(frame_, branches.blocks[frame_.decide(sim::Decision::Kind::branch, branches.blocks.size())]);
    return branches.end;
  }

  Address operator()(const action::Parallel& parallel) {
    const Branches& threads = program_.branches[parallel.branches];
    run_threads(frame_, threads);
    return threads.end;
  }

  void operator()(const action::Compute& compute) {
    rollcall::compute(frame_.with_jitter(compute.duration, compute.jitter));
  }

  void operator()(const action::LaunchKernel& launch) {
    Kernel kernel{.duration = launch.duration, .name = program_.strings[launch.name].c_str()};
    if (launch.by_roofline()) {
      kernel.source = Kernel::Source::roofline;
      kernel.duration = frame_.time_of({.flops = frame_.amount(launch.flops),
                                        .bytes = frame_.amount(launch.bytes),
                                        .precision = launch.precision,
                                        .kind = launch.kind});
    }
    kernel.duration = frame_.with_jitter(kernel.duration, launch.jitter);
    const NamedStreamScope stream(frame_, launch.stream);
    launch_kernel(kernel);
  }

  void operator()(const action::RecordEvent& record) {
    const NamedStreamScope stream(frame_, record.stream);
    frame_.events[record.event].record();
    frame_.stream_order().record(record.event, current_stream());
  }

  // An event that was not recorded is complete, as in CUDA.
  void operator()(const action::WaitEvent& wait) {
    const NamedStreamScope stream(frame_, wait.stream);
    frame_.events[wait.event].wait();
    frame_.stream_order().await_event(wait.event, current_stream());
  }

  void operator()(const action::WaitStream& wait) {
    Event event;
    const Stream awaited = frame_.stream(wait.awaited);
    {
      const StreamScope scope(awaited);
      event.record();
    }
    const NamedStreamScope stream(frame_, wait.stream);
    event.wait();
    frame_.stream_order().await_stream(awaited, current_stream());
  }

  void operator()(const action::Print& print) {
    bool has_tensor = false;
    for (const TextPiece& piece : program_.texts[print.text]) {
      if (const auto* elements = std::get_if<TextPiece::Elements>(&piece.piece)) {
        frame_.touch(key_of(elements->tensor), Observation::Access::read, site());
        has_tensor = true;
      }
    }
    rollcall::print(compose(frame_, print.text));
    if (has_tensor) {
      frame_.wait_on_host();
    }
  }

  void operator()(const action::Raise& raise) {
    throw Error(program_.strings[raise.type].c_str(), compose(frame_, raise.text));
  }

  void operator()(const action::Exit&) { throw ProgramExit{}; }

  void operator()(const action::Item& item) {
    frame_.touch(key_of(item.tensor), Observation::Access::read, site());
    if (item.variable == no_slot) {
      frame_.read(item.tensor).settle();
    } else {
      frame_.set(item.variable, whole_number(frame_.read(item.tensor)));
    }
    frame_.wait_on_host();
  }

  void operator()(const action::Fill& fill) {
    frame_.touch({program_.tensors[fill.tensor].slot}, Observation::Access::write, site());
    frame_.make(program_.tensors[fill.tensor]);
  }

  void operator()(const action::Add& add) {
    Tensor& target = frame_.tensors[add.target];
    frame_.touch({add.target}, Observation::Access::write, site());
    if (add.tensor.slot != no_slot) {
      frame_.touch(key_of(add.tensor), Observation::Access::read, site());
      add_to(target, frame_.read(add.tensor));
    } else {
      const Tensor one_element = target ? Tensor::zeros({1}, target.dtype(), target.device())
                                        : Tensor::zeros({1}, Dtype::float32, this_rank().device);
      frame_.set_elements(one_element, add.value);
      add_to(target, one_element);
    }
  }

  void operator()(const action::Copy& copy) {
    frame_.touch({copy.target}, Observation::Access::write, site());
    frame_.touch(key_of(copy.source), Observation::Access::read, site());
    Tensor& target = frame_.tensors[copy.target];
    const Tensor& source = frame_.read(copy.source);
    const bool fits = target && !target.is_meta() && target.shape() == source.shape() &&
                      target.dtype() == source.dtype() && target.device() == source.device();
    if (fits) {
      target.copy_(source);
    } else {
      target = source.clone();
    }
  }

  void operator()(const action::Check& check) {
    frame_.touch(key_of(check.tensor), Observation::Access::read, site());
    if (check.tensor.is_list && check.tensor.element < 0) {
      for (const Tensor& tensor : frame_.read_list(check.tensor.slot)) {
        check_elements(frame_, tensor, check, site());
      }
    } else {
      check_elements(frame_, frame_.read(check.tensor), check, site());
    }
  }

  void operator()(const action::SetDevice& set) {
    this_rank().device = set.device.resolve(frame_.rank(), frame_.local_rank());
  }

  void operator()(const action::CallGroup& call) {
    run_group_call(frame_, program_.group_statements[call.call], site());
  }

  void operator()(const action::CallStore& call) {
    run_store_call(frame_, program_.store_statements[call.call], site());
  }

  Address operator()(const action::Jump& jump) { return jump.target; }

  Address operator()(const action::JumpUnless& jump) {
    return frame_.evaluate(jump.condition) != 0 ? at_ + 1 : jump.target;
  }

  Address operator()(const action::LoopBegin& begin) {
    const Loop& loop = program_.loops[begin.loop];
    const bool takes_inputs = !loop.last;
    const std::int64_t first = frame_.evaluate(loop.first);
    const std::int64_t last = takes_inputs ? frame_.inputs() : frame_.evaluate(loop.last);
    if (takes_inputs && this_rank().inputs_taken < 0) {
      this_rank().inputs_taken = 0;  // from here on this rank counts
    }
    spend_step();
    if (takes_inputs) {
      this_rank().ran_out = first >= last;
    }
    if (first >= last) {
      return begin.end;
    }
    frame_.set(begin.counter, first);
    frame_.set(begin.bound, last);
    take_input(takes_inputs);
    return at_ + 1;
  }

  Address operator()(const action::LoopNext& next) {
    const std::int64_t following = frame_.number(next.counter) + 1;
    if (following >= frame_.number(next.bound)) {
      this_rank().ran_out = this_rank().ran_out || next.takes_inputs;
      return at_ + 1;
    }
    spend_step();
    frame_.set(next.counter, following);
    take_input(next.takes_inputs);
    return next.body;
  }

  Address operator()(const action::EnterJoin& enter) {
    const JoinCall& call = program_.joins[enter.call];
    std::vector<std::reference_wrapper<Joinable>> joinables;
    for (TableIndex object : call.objects) {
      joinables.emplace_back(frame_.joinable(object));
    }
    Join join(Joinables(std::move(joinables)), call.options);
    Address reached = enter.end;
    join.run([&] { reached = run_block(frame_, {at_ + 1, enter.end}); });
    return reached;
  }

  void operator()(const action::Forward& forward) { frame_.joinables[forward.object].forward(site()); }

  void operator()(const action::Notify& notify) {
    Join::notify_join_context(frame_.joinable(notify.object), site());
  }

  Address operator()(const action::ModelForward& forward) {
    Address reached = forward.end;
    frame_.trained(forward.object).forward(program_.passes[forward.pass], site(), [&] {
      reached = run_block(frame_, {at_ + 1, forward.end});
    });
    return reached;
  }

  void operator()(const action::Backward& backward) {
    frame_.trained(backward.object).backward(program_.passes[backward.pass], site());
  }

  void operator()(const action::Step& step) { frame_.trained(step.object).step(site()); }

  void operator()(const action::ZeroGrad& zero) {
    for (Parameter* const parameter : frame_.trained(zero.model).parameters()) {
      zero_grad(*parameter, zero.set_to_none);
    }
  }

  void operator()(const action::StateDict& dict) {
    if (dict.consolidates) {
      frame_.trained(dict.object).consolidate(dict.to ? frame_.evaluate(dict.to) : 0, site());
    } else {
      frame_.trained(dict.object).state_dict(site());
    }
  }

  void operator()(const action::RunParallel& run) { frame_.parallel(run.object)(run.verb, site()); }

  void operator()(const action::InitMesh& init) {
    run_init_device_mesh(frame_, program_.meshes[init.mesh], site());
  }

  Address operator()(const action::EnterNoSync& enter) {
    const auto guard = frame_.trained(enter.object).no_sync();
    return run_block(frame_, {at_ + 1, enter.end});
  }

  void operator()(const action::ShardingCall& call) { frame_.trained(call.object).call(call, site()); }

  void operator()(const action::ClipGradNorm& clip) {
    frame_.trained(clip.object).clip_grad_norm(clip, site());
  }

  // The handler is ordinary code: it must not run inside a C++ catch block, because a waiting rank
  // would be switched away from in the middle of an exception.
  Address operator()(const action::Try& attempt) {
    try {
      const Address reached = run_block(frame_, {at_ + 1, attempt.handler});
      return reached == attempt.handler ? attempt.end : reached;
    } catch (const Error& error) {
      frame_.caught[attempt.caught] = {error.type(), error.what()};
      frame_.raised_at = {};
    }
    return attempt.handler;
  }

 private:
  Address execute(const Action& action) {
    return std::visit(
        [this](const auto& each) {
          if constexpr (std::is_void_v<decltype((*this)(each))>) {
            (*this)(each);
            return at_ + 1;
          } else {
            return (*this)(each);
          }
        },
        action);
  }

  Site site() const {
    const Instruction& instruction = program_.code[at_];
    const std::string& file = instruction.file == none ? program_.file : program_.strings[instruction.file];
    return {file.c_str(), instruction.line, instruction.column};
  }

  static void take_input(bool takes_inputs) {
    if (takes_inputs) {
      this_rank().backend->observer().begin_step(this_rank().inputs_taken++);
    }
  }

  static TensorKey key_of(const TensorName& name) { return {name.slot, name.is_list}; }

  void block_in(const std::vector<Work>& works) {
    if (unfinished_ == nullptr || !frame_.calls_block()) {
      for (const Work& work : works) {
        work.wait();
      }
    } else {
      unfinished_->insert(unfinished_->end(), works.begin(), works.end());
    }
  }

  static void add_to(Tensor& target, const Tensor& amount) {
    if (!target) {
      target = Tensor::zeros(amount.shape(), amount.dtype(), amount.device());
    }
    target.add_(amount);
  }

  RankFrame& frame_;
  const Program& program_;
  std::vector<Work>* unfinished_;
  Address at_ = 0;
};

}  // namespace

Address run_block(RankFrame& frame, const Block& block) { return Interpreter(frame).run(block); }

void block_host(const RankFrame& frame) {
  if (frame.scenario().blocking_wait) {
    rollcall::synchronize(current_stream());
  }
}

void step(RankFrame& frame, Thread& thread) {
  thread.at = Interpreter(frame, &thread.waits_for).step(thread.at);
}

namespace {

// Keeps watched tensors however the program ends: by its last statement, an exception, or the run's
// end.
struct KeepWatched {
  const RankFrame& frame;
  WatchedTensors& watched;
  ~KeepWatched() { watched.keep(frame); }
};

// Out of line, as everything that a rank does not do while it waits: run_rank's frame is on the stack of every waiting
// rank, and with all frames that follow it fits a page (docs/decisions/0006-stacks.md).
[[gnu::noinline]] void report_failure(const CheckFailure& failure) {
  this_rank().backend->observer().observe(failure.observation());
}

}  // namespace

void run_rank(const Scenario& scenario, Rank rank, RunState& state) {
  RankFrame frame(scenario, rank, state);
  const KeepWatched keep{frame, state.watched};
  try {
    frame.construct_objects();
    run_block(frame, scenario.block_of(rank));
  } catch (const ProgramExit&) {
    // The rank is done, and its process exits like any other that reaches its end.
  } catch (const CheckFailure& failure) {
    report_failure(failure);  // no `try` of the program caught it
    throw;
  } catch (Error& error) {
    error.set_site(frame.raised_at);  // the statement's place, not that of a call inside it
    throw;
  }
}

}  // namespace rollcall::scenario
