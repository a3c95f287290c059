#include "scenarios/run/scripted_joinable.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"

namespace rollcall::scenario {
namespace {

// A keyword argument as expressions read it: true is 1; text and fractions are not integers.
Variable to_variable(const KwargValue& value) {
  return std::visit(
      [](const auto& held) -> Variable {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool> || std::is_same_v<Held, std::int64_t>) {
          return {static_cast<std::int64_t>(held), Variable::State::number};
        } else {
          return {0, Variable::State::not_a_number};
        }
      },
      value);
}

// The hook of one context. It stores the keyword arguments: two contexts may pass different ones.
class ScriptedHook final : public JoinHook {
 public:
  ScriptedHook(RankFrame& frame, const std::string& name, const JoinableObject& object, const Kwargs& kwargs)
      : frame_(frame), name_(name), object_(object) {
    for (const auto& [name, slot] : frame.program().kwargs) {
      const auto given = kwargs.find(name);
      // A missing argument counts as false, as with kwargs.get(name, False).
      kwargs_.emplace_back(
          slot, given != kwargs.end() ? to_variable(given->second) : Variable{0, Variable::State::number});
    }
  }

  void main_hook() override {
    const Scope scope(object_.main_hook_scope, name_);
    run(object_.main_hook);
  }

  void post_hook(bool is_last_joiner) override {
    const Scope scope(object_.post_hook_scope, object_.post_hook_scope);
    frame_.set(builtin::is_last_joiner, is_last_joiner ? 1 : 0);
    run(object_.post_hook);
  }

 private:
  void run(const Block& block) {
    for (const auto& [slot, value] : kwargs_) {
      frame_.variables[slot] = value;
    }
    run_block(frame_, block);
  }

  RankFrame& frame_;
  const std::string& name_;
  const JoinableObject& object_;
  std::vector<std::pair<SlotIndex, Variable>> kwargs_;
};

const JoinableObject& statements_of(const ObjectSpec& object) {
  static const JoinableObject without;
  const auto* const own = std::get_if<JoinableObject>(&object.kind);
  return own == nullptr ? without : *own;
}

}  // namespace

ScriptedJoinable::ScriptedJoinable(RankFrame& frame, const ObjectSpec& object)
    : frame_(&frame), object_(&object), statements_(&statements_of(object)) {}

void ScriptedJoinable::forward(Site site) {
  if (statements_->notify) {
    Join::notify_join_context(*this, site);
  }
  const Scope scope(statements_->forward_scope, object_->name);
  run_block(*frame_, statements_->forward);
}

std::unique_ptr<JoinHook> ScriptedJoinable::join_hook(const Kwargs& kwargs) {
  return std::make_unique<ScriptedHook>(*frame_, object_->name, *statements_, kwargs);
}

Device ScriptedJoinable::join_device() const {
  return statements_->join_device ? statements_->join_device->resolve(frame_->rank(), frame_->local_rank())
                                  : this_rank().device;
}

ProcessGroup ScriptedJoinable::join_process_group() const {
  return std::holds_alternative<JoinableObject>(object_->kind) ? frame_->group(object_->group) : world();
}

}  // namespace rollcall::scenario
