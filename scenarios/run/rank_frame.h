#pragma once

// RankFrame: the state of one rank of a scenario while it runs. The program is shared; this is not.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/format/scenario.h"
#include "scenarios/program/program.h"
#include "scenarios/run/parallelism.h"
#include "scenarios/run/run_state.h"
#include "scenarios/run/scripted_joinable.h"
#include "scenarios/run/tensor_uses.h"
#include "scenarios/run/training.h"
#include "sim/c10d/process_group.h"
#include "sim/c10d/scope.h"
#include "sim/c10d/stream.h"
#include "sim/c10d/work.h"
#include "sim/cost/roofline.h"
#include "sim/engine/compute_times.h"
#include "sim/tensor/tensor.h"
#include "sim/train/coalescing.h"

namespace rollcall::scenario {

// The error that a `try` caught.
struct CaughtError {
  std::string type;
  std::string message;
};

// An asynchronous call, or a batch of them.
struct IssuedCall {
  bool issued = false;
  std::vector<Work> works;  // a rank outside the call's group has none, or one that is nothing
  std::optional<CoalescingManager> coalesced{};
};

// True if a rank's whole state between two statements is in its frame.
bool is_plain(const Program& program);

class RankFrame {
 public:
  // `scenario` and `state` must outlive the frame. Made on the rank's own fiber.
  RankFrame(const Scenario& scenario, Rank rank, RunState& state);
  RankFrame(const RankFrame&) = delete;
  RankFrame& operator=(const RankFrame&) = delete;

  const Scenario& scenario() const { return scenario_; }
  const Program& program() const { return program_; }
  Rank rank() const { return rank_; }
  Rank local_rank() const { return local_rank_; }
  std::int64_t inputs() const { return scenario_.inputs.of(rank_); }

  std::int64_t number(SlotIndex variable) const { return variables[variable].value; }
  void set(SlotIndex variable, std::int64_t value) { variables[variable] = {value, Variable::State::number}; }

  // The value of an operand that is an integer or an expression. Throws what expressions throw.
  std::int64_t evaluate(const Operand& operand) const;
  // The same for a rank of the world. Throws ValueError if it is none.
  Rank rank_of(const Operand& operand) const;
  // Flops or bytes; 0 if the statement gives none. Throws ValueError if negative.
  double amount(const Operand& operand) const;
  // The kernel's time on the rank's GPU. Throws RuntimeError if unknown.
  Duration time_of(const cost::KernelWork& work) const;
  // Sets every element.
  void set_elements(const Tensor& tensor, const Operand& value) const;

  // The tensor of a statement: the rank's own of this name, or a new one if there is none or the statement requires
  // another kind. `default_numel` is the size of a new tensor without one.
  Tensor& make(const TensorSpec& spec, std::int64_t default_numel = 1);
  // The same, without setting its elements.
  Tensor& shape(const TensorSpec& spec, std::int64_t default_numel = 1);
  // A tensor for results, of the given size and otherwise like `model`.
  Tensor& output(SlotIndex slot, std::int64_t numel, const Tensor& model);
  // A list of `count` tensors like `model`. `alike`: the same tensor many times, for lists that are never read.
  TensorList& list(SlotIndex slot, std::size_t count, const Tensor& model, bool alike);

  // Tensors to read. Throw NameError if the rank has none of this name.
  const Tensor& read(const TensorName& name) const;
  const TensorList& read_list(SlotIndex slot) const;

  // The calls to wait for. Throws NameError if they have not been issued. A rank outside the call's group has none, or
  // one that is nothing (Python's None).
  const std::vector<Work>& issued_works(SlotIndex slot) const;
  // Stores what an asynchronous call returned: under a name, or (no_slot) only for `synchronize`.
  void keep_work(SlotIndex slot, const Work& work);
  void keep_works(SlotIndex slot, std::vector<Work> works);
  // The same for an asynchronous _coalescing_manager, whose results are available once its handle has been waited for.
  void keep_coalesced(SlotIndex slot, CoalescingManager manager);
  // Waits for all of these that were issued.
  void finish_coalesced();
  // The program lets go of what an asynchronous call returned, and its name. Throws NameError if it was not issued.
  void drop_works(SlotIndex slot);
  // Returns all issued calls not yet known to be done, in order, and forgets them.
  std::vector<Work> take_open_works();

  // Notes that a call works on a tensor: until its handle is waited for, or (`is_awaited`) until the current stream has
  // waited for it, which it was asked to do. Tensors without a name are nobody else's.
  void use(const TensorUse& tensor_use, bool is_awaited = false);
  // `tensor` is the result of a functional collective: the first use of it waits for `work`.
  void finish_at_use(SlotIndex tensor, const Work& work);
  // Its handle was waited for on the current stream.
  void release(SlotIndex work);
  // Called when a statement touches a tensor: reports it if a call still works on it.
  void touch(TensorKey tensor, Observation::Access access, Site site);
  // True if a call may still work on a tensor.
  bool has_uses() const { return !uses_.empty(); }
  // Called when a call begins to work on a tensor. Tensors without a name are nobody else's.
  void touch(const TensorUse& tensor_use);
  // Reports that a statement, or the call `by`, touches a tensor on which the known call may still work.
  void report_touch(const TensorUse& known, Observation::Access access, Site site, std::string_view by = "");

  // Called before a statement, at `at`, that may wait for others. If states of runs are compared, passes on what the
  // rank holds.
  void rest(Address at) {
    if (compares_states_) [[unlikely]] {
      pass_on_state(at);
    }
  }

  // Notes what this rank contributes to a reduction into a named tensor, its next call on this group.
  void contribute(SlotIndex tensor, const ProcessGroup& group, double value);
  // Counts a call of this rank on a group, of any kind.
  void count_call(const ProcessGroup& group) {
    if (program_.checks) {
      ++calls_[group.id()];
    }
  }
  std::vector<std::pair<Rank, double>> contributions_to(const std::string& tensor) {
    return state_.contributions.to(rank_, tensor);
  }

  // The rank's stream of this name; the current one for no_slot.
  Stream stream(SlotIndex slot);
  // What runs a call on the group, or a message with `peer`; none where calls run in any order.
  std::optional<CallQueue> queue_of(const ProcessGroup& group, Rank peer = -1) const;
  // True if a call without async_op blocks the host, and not only a stream.
  bool calls_block() const { return calls_block_; }
  // True if the rank has several streams, so that a wait on one of them leaves the others unordered.
  bool has_streams() const { return uses_.has_streams(); }
  // What orders its streams.
  StreamOrder& stream_order() { return uses_.order(); }
  // The host has waited for the current stream. Without several streams, nobody asks for their order.
  void wait_on_host() {
    if (has_streams()) {
      stream_order().await_on_host(current_stream());
    }
  }

  // The time that a compute of this duration takes now: up to `most` millionths more, drawn from the run's seed.
  Duration with_jitter(Duration duration, std::int64_t most) {
    return most == 0
               ? duration
               : sim::jittered(state_.decisions, duration, most, state_.seed ^ own_draws, rank_, draws_++);
  }
  // The way taken if timing decides between `ways`.
  std::size_t decide(sim::Decision::Kind kind, std::size_t ways) {
    return state_.decisions == nullptr
               ? 0
               : state_.decisions->decide({.kind = kind, .rank = rank_, .ways = ways});
  }

  // Makes the objects of the groups that the rank belongs to. Blocks: models receive rank 0's values.
  void construct_objects();
  // An object of the scenario, to join.
  Joinable& joinable(TableIndex object);
  // A model or an optimizer; null if the rank does not belong to its group. The other two throw NameError then.
  TrainedObject* find_trained(TableIndex object) const { return trained_[object].get(); }
  TrainedObject& trained(TableIndex object) const;
  const ParallelObject& parallel(TableIndex object) const;
  // Where the file describes an object.
  Site site_of(const ObjectSpec& object) const { return {program_.file.c_str(), object.line, object.column}; }

  // The group in this slot; the world for no_slot. Throws NameError for one that a statement makes and this rank has
  // not made.
  ProcessGroup group(SlotIndex slot);
  void set_group(SlotIndex slot, const ProcessGroup& group) { groups_[slot] = group; }

  // By slot.
  std::vector<Variable> variables;
  std::vector<Tensor> tensors;
  std::vector<TensorList> lists;
  std::vector<ObjectList> objects;
  std::vector<Event> events;
  std::vector<ScriptedJoinable> joinables;  // by Program::objects
  std::vector<CaughtError> caught;
  Site raised_at{};  // of the exception being propagated; unknown if there is none

 private:
  [[noreturn]] void refuse(TableIndex object) const;
  void finish(SlotIndex tensor) const;
  bool keeps_all_works() const;
  // The program drops these handles.
  void let_go(std::span<const Work> works);
  const std::string& name_of(TensorKey tensor) const;
  const std::string& name_of(Stream stream) const;
  void pass_on_state(Address at);
  std::string held(Address at) const;

  const Scenario& scenario_;
  const Program& program_;
  Rank rank_;
  Rank local_rank_;
  // Makes a statement and a fault with jitter draw differently.
  static constexpr std::uint64_t own_draws = 0x6a69747465722121;

  RunState& state_;
  std::uint64_t draws_ = 0;
  std::vector<std::unique_ptr<TrainedObject>> trained_;      // by Program::objects
  std::vector<ParallelObject> parallel_;                     // likewise
  std::vector<ProcessGroup> groups_;                         // by slot; looked up at first use
  std::vector<IssuedCall> works_;                            // by slot
  std::vector<CoalescingManager> open_coalesced_;            // those without a handle
  std::vector<Work> open_works_;                             // for `synchronize`, if the program has one
  mutable std::vector<std::pair<SlotIndex, Work>> results_;  // of functional collectives, not used yet
  std::vector<std::optional<Stream>> streams_;               // by slot
  bool queues_calls_;
  bool calls_block_;
  TensorUses uses_;
  const cost::Gpu* gpu_;  // null: unknown
  bool compares_states_;
  std::map<GroupId, std::int64_t> calls_;
};

// Enters the scope that a statement's label names, if it has one, for the lifetime of the object.
class LabelScope {
 public:
  LabelScope(const RankFrame& frame, TableIndex label) {
    if (label != none) {
      scope_.emplace(frame.program().strings[label]);
    }
  }

 private:
  std::optional<Scope> scope_;
};

// Enters the stream that a statement names, if it names one, for the lifetime of the object.
class NamedStreamScope {
 public:
  NamedStreamScope(RankFrame& frame, SlotIndex stream) {
    if (stream != no_slot) {
      scope_.emplace(frame.stream(stream));
    }
  }

 private:
  std::optional<StreamScope> scope_;
};

}  // namespace rollcall::scenario
