#include "sim/gloo/gloo_rules.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/c10d/gloo_admission.h"
#include "sim/gloo/gloo_call.h"
#include "sim/gloo/gloo_reduction.h"
#include "sim/match/slot_calls.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::sim {
namespace {

using check::Fate;
using check::GroupMatcher;
using check::Slot;

// Slots larger than this are not exchanged message by message: their members simply hang. Bytes
// are counted over all members; steps are those of the algorithms' lists.
constexpr std::size_t exchanged_bytes_max = 256 * 1024 * 1024;
constexpr std::size_t exchanged_steps_max = 8 * 1024 * 1024;

// Larger groups are not simulated member by member when some members never arrive.
constexpr Rank most_exchanging = 4096;

// Reductions larger than this, over all members, keep the reference order of additions and change only
// their results. A uniform tensor would become a dense one here, on every rank.
constexpr std::int64_t most_ordered_bytes = 256 * 1024;

class GlooRules final : public BackendRules {
 public:
  explicit GlooRules(const TorchTraits& torch) : torch_(torch) {}

  const BackendTraits& traits() const override { return traits_; }

  bool refuses(const Op& op) const override {
    return gloo_refuses(op, torch_) || gloo_raises_late(op, torch_);
  }
  Error refusal(const Op& op, Rank group_size) const override {
    return refuses(op) ? gloo_refusal(op, torch_) : RuntimeError(gloo_enforce_text(op, group_size));
  }
  bool raises_late(const Op& op, Rank group_size) const override {
    return gloo_raises_late(op, torch_) || !gloo_enforce_text(op, group_size).empty();
  }

  bool has_own_order() const override { return true; }

  bool complete(const Op& op, Slot& slot) const override {
    const auto ranks = static_cast<std::int64_t>(slot.tensors.size());
    const OpRow& row = row_of(op.kind);
    const bool mixes = row.reduces && row.given != Tensors::several;
    if (!mixes || ranks < 2 || op.numel == 0 || bytes_of(op) > most_ordered_bytes / ranks) {
      return false;
    }
    if (!slot.uniform && std::ranges::any_of(slot.tensors, [](const Storage* tensor) {
          return tensor->form == Storage::Form::meta;
        })) {
      return false;
    }
    const bool any_order =
        slot.uniform ? !gloo::order_matters(op.reduce, op.dtype, slot.values) : !is_floating(op.dtype);
    if (row.sizes == Sizes::divided) {
      if (!any_order) {
        gloo::reduce_and_scatter(op, slot.ops);
      }
      return !any_order;
    }
    if (op.kind == OpKind::all_reduce && any_order) {
      return false;
    }
    gloo::reduce_by_ring(op, slot.uniform ? std::span<const Bits>(slot.values) : std::span<const Bits>(),
                         slot.tensors);
    return true;
  }

  // Every rank runs its own version of the algorithm against the others'.
  void settle(const GroupMatcher& matcher, Slot& slot) const override {
    const std::vector<Op> ops = calls_of(matcher, slot);
    give_all(slot, ops.size(), Fate::hangs);
    std::vector<gloo::Call> calls;
    for (const Op& op : ops) {
      calls.emplace_back(op, ops.size());
    }
    if (is_exchangeable(calls)) {
      exchange(ops, calls, slot);
    }
    for (std::size_t rank = 0; rank < ops.size(); ++rank) {
      if (const std::string error = error_of(ops[rank], ops.size()); !error.empty()) {
        slot.fates[rank] = Fate::fails;
        slot.failures[rank] = error;
      }
    }
  }

  // Broadcast is a tree, and gather, scatter and all_to_all are messages: members complete if they have no message
  // from, or to, the missing ranks. The other algorithms are rings, and all members need each other, except in a reduce
  // of a few elements: a rank without a segment has nothing to send to the root. A ring without elements sends nothing
  // at all.
  void settle_partly(const GroupMatcher& matcher, Slot& slot) const override {
    const Op& op = slot.reference;
    const bool may_go_on = slot.differs || passes_messages(op.kind) || (has_tensor(op.kind) && op.numel == 0);
    if (matcher.size() > most_exchanging || !may_go_on) {
      return;
    }
    const Present present(matcher, slot);
    if (!can_run(present)) {
      return;
    }
    std::vector<gloo::Member> members = members_of(present);
    const std::vector<gloo::Outcome> outcomes = gloo::exchange(members, torch_);
    give_all(slot, members.size(), Fate::hangs);
    for (const gloo::Call& call : present.calls) {
      const std::size_t rank = call.rank();
      slot.fates[rank] = outcomes[rank].fate;
      slot.failures[rank] = outcomes[rank].failure;
      if (outcomes[rank].fate == Fate::completes && !members[rank].memory.empty()) {
        call.keep(members[rank].memory);
      }
    }
  }

  std::vector<check::Stuck> stuck_in(const GroupMatcher& matcher, const Slot& slot) const override {
    if (matcher.size() > most_exchanging || slot.reference.kind == OpKind::monitored_barrier) {
      return {};
    }
    const Present present(matcher, slot);
    if (!can_run(present)) {
      return {};
    }
    std::vector<gloo::Member> members = members_of(present);
    std::vector<check::Stuck> stuck;
    for (const gloo::Outcome& outcome : gloo::exchange(members, torch_)) {
      stuck.push_back(outcome.stuck);
    }
    return stuck;
  }

  std::pair<Fate, Fate> settle(const Op& send, const Op& receive) const override {
    if (const std::int64_t sent = bytes_of(send); sent > bytes_of(receive)) {
      const bool leaves = gloo::leaves_unread(static_cast<std::size_t>(sent));
      return {leaves ? Fate::completes : Fate::hangs, Fate::crashes};
    }
    copy_front(send, receive);
    return {Fate::completes, Fate::completes};
  }

  std::string timeout_text(Duration timeout, bool in_send) const override {
    return fmt::format(
        "[./gloo/transport/tcp/unbound_buffer.cc:{}] Timed out waiting {}ms for {} operation to complete",
        in_send ? torch_.gloo_lines.send_timeout : torch_.gloo_lines.recv_timeout, timeout / millisecond,
        in_send ? "send" : "recv");
  }
  std::string wait_timeout_text(Duration) const override {
    return "Operation timed out!";  // ProcessGroup.cpp, Work::wait
  }
  std::string lost_peer_text() const override {
    return fmt::format("[./gloo/transport/tcp/pair.cc:{}] Connection closed by peer",
                       torch_.gloo_lines.closed);
  }

 private:
  // The members that have reached a slot, with their calls.
  struct Present {
    Present(const GroupMatcher& matcher, const Slot& slot) : ops(static_cast<std::size_t>(matcher.size())) {
      for (std::size_t rank = 0; rank < ops.size(); ++rank) {
        if (slot.has(static_cast<Rank>(rank))) {
          ops[rank] = matcher.op_of(slot, static_cast<Rank>(rank));
          calls.emplace_back(ops[rank], ops.size());
        }
      }
    }
    Present(const Present&) = delete;
    Present& operator=(const Present&) = delete;

    std::vector<Op> ops;  // by group rank; calls borrow them
    std::vector<gloo::Call> calls;
  };

  bool can_run(const Present& present) const {
    return is_exchangeable(present.calls) && std::ranges::all_of(present.calls, [&](const gloo::Call& call) {
             return error_of(present.ops[call.rank()], present.ops.size()).empty();
           });
  }

  // By group rank; a missing member takes no step.
  static std::vector<gloo::Member> members_of(const Present& present) {
    std::vector<gloo::Member> members(present.ops.size());
    for (const gloo::Call& call : present.calls) {
      members[call.rank()] = call.member();
    }
    return members;
  }

  static bool passes_messages(OpKind kind) {
    const OpRow& row = row_of(kind);
    return row.root != Root::none || row.gloo == GlooFunction::all_to_all;
  }

  static bool is_exchangeable(const std::vector<gloo::Call>& calls) {
    std::size_t bytes = 0;
    std::size_t steps = 0;
    for (const gloo::Call& call : calls) {
      bytes += call.memory_bytes();
      steps += call.step_count();
    }
    return bytes <= exchanged_bytes_max && steps <= exchanged_steps_max;
  }

  // The error that a rank raises on its own while it runs the call; empty if none.
  std::string error_of(const Op& op, std::size_t ranks) const {
    const auto size = static_cast<Rank>(ranks);
    return raises_late(op, size) ? refusal(op, size).what() : "";
  }

  // A rank that raises sends nothing.
  void exchange(const std::vector<Op>& ops, const std::vector<gloo::Call>& calls, Slot& slot) const {
    std::vector<gloo::Member> members;
    for (std::size_t rank = 0; rank < ops.size(); ++rank) {
      members.push_back(error_of(ops[rank], ops.size()).empty() ? calls[rank].member() : gloo::Member());
    }
    const std::vector<gloo::Outcome> outcomes = gloo::exchange(members, torch_);
    slot.stuck.clear();  // filled in now: later the tensors of the ranks that complete are gone
    for (std::size_t rank = 0; rank < ops.size(); ++rank) {
      slot.stuck.push_back(outcomes[rank].stuck);
      slot.fates[rank] = outcomes[rank].fate;
      slot.failures[rank] = outcomes[rank].failure;
      if (outcomes[rank].fate == Fate::completes && !members[rank].memory.empty()) {
        calls[rank].keep(members[rank].memory);
      }
    }
  }

  const TorchTraits& torch_;
  const BackendTraits& traits_ = traits_of("gloo");
};

}  // namespace

std::unique_ptr<BackendRules> make_gloo_rules(const TorchTraits& torch) {
  return std::make_unique<GlooRules>(torch);
}

}  // namespace rollcall::sim
