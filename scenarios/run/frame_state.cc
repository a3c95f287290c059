// The state of a rank of a scenario between two statements, for comparing states of runs.

#include <algorithm>
#include <map>
#include <type_traits>
#include <variant>

#include "scenarios/run/rank_frame.h"
#include "sim/base/encoding.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/rank_context.h"
#include "sim/tensor/tensor_bytes.h"

namespace rollcall::scenario {
namespace {

template <typename Wanted, typename... Others>
constexpr bool is_among = (std::is_same_v<Wanted, Others> || ...);

// Statements whose effect on a rank is in its frame, or ends with them. An address describes a rank's position: the
// blocks around it follow from that.
bool is_plain(const Action& action) {
  using namespace action;
  return std::visit(
      []<typename T>(const T&) {
        return is_among<T, Collect, Wait, Drop, Exchange, Touch, Choose, Compute, Print, Raise, Exit, Item,
                        Fill, Add, Copy, Check, CallStore, Jump, JumpUnless, LoopBegin, LoopNext, Try>;
      },
      action);
}

bool may_wait(const Action& action) {
  return std::holds_alternative<action::Collect>(action) || std::holds_alternative<action::Wait>(action) ||
         std::holds_alternative<action::Exchange>(action) ||
         std::holds_alternative<action::CallStore>(action);
}

}  // namespace

bool is_plain(const Program& program) {
  return program.objects.empty() && !program.synchronizes && program.streams.empty() &&
         program.object_lists.empty() &&
         std::ranges::all_of(program.code, [](const Instruction& each) { return is_plain(each.action); });
}

// Out of line: every waiting rank has its caller's frame on its stack.
[[gnu::noinline]] void RankFrame::pass_on_state(Address at) {
  if (!may_wait(program_.code[at].action)) {
    return;
  }
  Observer& observer = this_rank().backend->observer();
  if (uses_.empty() && results_.empty() && observer.can_forget()) {
    observer.holds(held(at));
  }
}

// Distinguishes tensors that share their values from those that only have equal ones.
std::string RankFrame::held(Address at) const {
  Encoder state;
  state(at);
  for (const Variable& variable : variables) {
    state(variable.state, variable.value);
  }
  std::map<const Storage*, std::uint32_t> seen;
  const auto write = [&](const Tensor& tensor) {
    const Storage* const storage = tensor ? tensor.storage() : nullptr;
    const auto [known, is_new] = seen.try_emplace(storage, static_cast<std::uint32_t>(seen.size()));
    state(known->second, storage != nullptr, is_new);
    if (is_new && storage != nullptr) {
      state(
          storage->references.load());  // a statement makes a new tensor while a call still uses the old one
      write_values(state, *storage);
    }
  };
  std::ranges::for_each(tensors, write);
  for (const TensorList& list : lists) {
    state(static_cast<std::uint32_t>(list.size()));
    std::ranges::for_each(list, write);
  }
  for (const IssuedCall& call : works_) {
    state(call.issued);
    state(static_cast<std::uint32_t>(call.works.size()));
    for (const Work& work : call.works) {
      state(work.group(), work.rank(), work.seq(), work.is_point_to_point());
    }
  }
  for (const CaughtError& error : caught) {
    state(error.type, error.message);
  }
  state(draws_);
  state(calls_);
  return std::move(state.bytes);
}

}  // namespace rollcall::scenario
