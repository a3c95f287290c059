#include "tests/conformance/joinables.h"

#include <stdexcept>

namespace rollcall::golden {

class Tally::Hook final : public JoinHook {
 public:
  Hook(Tally& owner, bool sync_max_count) : owner_(owner), sync_max_count_(sync_max_count) {}

  void main_hook() override {
    Scope site("user.main_hook");
    all_reduce(Tensor::zeros({1}));
  }

  void post_hook(bool is_last_joiner) override {
    Scope site("user.post_hook");
    owner_.context_.put(owner_.key("is_last_joiner"), is_last_joiner);
    if (!sync_max_count_) {
      return;
    }
    Rank chosen = owner_.agree(is_last_joiner);
    owner_.context_.put(owner_.key("common_rank"), std::int64_t{chosen});
    if (chosen == get_rank()) {
      owner_.count_max_ = owner_.count_.clone();
    }
    broadcast(owner_.count_max_, chosen);
  }

 private:
  Tally& owner_;  // outlives its hook, as Join requires
  bool sync_max_count_;
};

Tally::Tally(CaseContext& context, std::string name) : context_(context), name_(std::move(name)) {}

void Tally::operator()() {
  Scope site("user.__call__");
  Join::notify_join_context(*this);
  Tensor one = Tensor::ones({1});
  all_reduce(one);
  count_.add_(one);
}

std::unique_ptr<JoinHook> Tally::join_hook(const Kwargs& kwargs) {
  context_.put(key("kwargs"), kwargs);
  return std::make_unique<Hook>(*this, get_or(kwargs, "sync_max_count", false));
}

Rank Tally::agree(bool is_candidate) {
  Scope site("user.agree");
  Tensor candidate = Tensor::integer(is_candidate ? get_rank() : -1);
  all_reduce(candidate, {.op = ReduceOp::max});
  return static_cast<Rank>(candidate.item_integer());
}

std::string Tally::key(const std::string& what) const { return name_.empty() ? what : name_ + "." + what; }

class Scripted::Hook final : public JoinHook {
 public:
  explicit Hook(Scripted& owner) : owner_(owner) {}

  void main_hook() override {
    note("main_hook", run_steps(owner_.script_.main_hook, 0.0, owner_.script_.group));
  }

  void post_hook(bool is_last_joiner) override {
    owner_.context_.put(owner_.label() + ".is_last_joiner", is_last_joiner);
    Steps steps = owner_.script_.post_hook ? owner_.script_.post_hook(is_last_joiner) : Steps{};
    note("post_hook", run_steps(steps, 7.0, owner_.script_.group));
  }

 private:
  void note(const char* what, const StepResults& results) {
    owner_.context_.add(owner_.label() + "." + what, results);
  }

  Scripted& owner_;  // outlives its hook, as Join requires
};

void Scripted::operator()() {
  if (script_.notify) {
    Join::notify_join_context(*this);
  }
  context_.add(label() + ".forward", run_steps(script_.forward, 1.0, script_.group));
}

std::unique_ptr<JoinHook> Scripted::join_hook(const Kwargs& kwargs) {
  context_.put(label() + ".kwargs", kwargs);
  return std::make_unique<Hook>(*this);
}

namespace {

StepResult run_step(const Step& step, double fill, const ProcessGroup& group) {
  Tensor tensor = Tensor::full({step.numel}, fill, step.dtype);
  if (step.kind == "all_reduce") {
    all_reduce(tensor, {.op = step.reduce, .group = group});
  } else if (step.kind == "broadcast") {
    broadcast(tensor, step.root, {.group = group});
  } else if (step.kind == "barrier") {
    barrier({.group = group});
  } else if (step.kind == "all_gather") {
    TensorList parts;
    for (Rank rank = 0; rank < get_world_size(group); ++rank) {
      parts.push_back(Tensor::zeros({step.numel}, step.dtype));
    }
    all_gather(parts, tensor, {.group = group});
    return parts;
  } else {
    throw std::runtime_error("no such step: " + step.kind);
  }
  return {tensor};
}

}  // namespace

StepResults run_steps(const Steps& steps, double fill, const ProcessGroup& group) {
  Scope site("user.run_steps");
  StepResults results;
  for (const Step& step : steps) {
    results.push_back(run_step(step, fill, group));
  }
  return results;
}

PostSteps always(Steps steps) {
  return [steps = std::move(steps)](bool) { return steps; };
}

}  // namespace rollcall::golden
