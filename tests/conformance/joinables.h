#pragma once

// The two joinables of the golden programs, written as a user of rollcall would write them.

#include <functional>
#include <memory>
#include <string>

#include "sim/dist.h"
#include "tests/conformance/case_context.h"
#include "tests/conformance/golden_case.h"

namespace rollcall::golden {

// Counts the inputs that all ranks process, with one all_reduce per call. With the keyword argument sync_max_count, all
// ranks end with the last joiner's count.
class Tally : public Joinable {
 public:
  explicit Tally(CaseContext& context, std::string name = "");

  void operator()();

  std::unique_ptr<JoinHook> join_hook(const Kwargs& kwargs) override;
  Device join_device() const override { return cpu_device; }
  ProcessGroup join_process_group() const override { return world(); }

  // Returns the rank whose count is the final one; the same on every rank.
  Rank agree(bool is_candidate);
  // Returns the name of a value of this joinable: "count", or "a.count" for the joinable called a.
  std::string key(const std::string& what) const;

  const Tensor& count() const { return count_; }
  const Tensor& count_max() const { return count_max_; }

 private:
  class Hook;

  CaseContext& context_;  // the rank's, outlives its program
  std::string name_;
  Tensor count_ = Tensor::zeros({1});
  Tensor count_max_ = Tensor::zeros({1});
};

// The steps of post_hook, given is_last_joiner.
using PostSteps = std::function<Steps(bool is_last_joiner)>;

// A joinable whose collectives are given as lists of steps.
class Scripted : public Joinable {
 public:
  struct Script {
    Steps forward{};
    Steps main_hook{};
    PostSteps post_hook{};  // null: no steps
    ProcessGroup group{};   // none: the world
    bool notify = true;
    Device device{};
    std::string name = "s";
  };

  Scripted(CaseContext& context, Script script) : context_(context), script_(std::move(script)) {}

  void operator()();

  std::unique_ptr<JoinHook> join_hook(const Kwargs& kwargs) override;
  Device join_device() const override { return script_.device; }
  ProcessGroup join_process_group() const override { return script_.group ? script_.group : world(); }
  const std::string& label() const { return script_.name; }

 private:
  class Hook;

  CaseContext& context_;  // the rank's, outlives its program
  Script script_;
};

// Issues the steps one by one on tensors filled with `fill`; returns the tensors afterwards.
StepResults run_steps(const Steps& steps, double fill, const ProcessGroup& group);

// post_hook does the same, whether or not the rank is the last joiner.
PostSteps always(Steps steps);

inline Step all_reduce_step(std::int64_t numel) { return {.kind = "all_reduce", .numel = numel}; }
inline Step broadcast_step(Rank root) { return {.kind = "broadcast", .root = root}; }

}  // namespace rollcall::golden
