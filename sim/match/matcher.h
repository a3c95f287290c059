#pragma once

// The matcher: which calls pair with each other. Pure: it has no fibers, time or backends, so the same code pairs calls
// of a simulation, of a live run and of a dump from anywhere.
//
// The rule is the same in every library: the k-th collective of a rank on a group meets the k-th of every other member.
// Point k of one group is a Slot. Real backends compare nothing else; the matcher compares what they do not.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/expects.h"
#include "sim/base/scope_table.h"
#include "sim/c10d/op.h"

namespace rollcall::check {

// True when two calls may share a slot: same operation, dtype, reduction and root, and the same number of elements
// where the operation requires it.
bool same_call(const Op& a, const Op& b);

// True when a report shows both alike, except for the device (which differs from rank to rank).
//
// Called for every call, right after its Op was written: field by field and without branches, because a load that spans
// several pending stores has to wait for all of them.
inline bool same_in_reports(const Op& a, const Op& b) {
  const auto differ = [](auto x, auto y) {
    return static_cast<std::uint64_t>(x) ^ static_cast<std::uint64_t>(y);
  };
  const std::uint64_t in_kind = differ(a.kind, b.kind) | differ(a.dtype, b.dtype) |
                                differ(a.reduce, b.reduce) | differ(a.async_op, b.async_op) |
                                differ(a.shadow, b.shadow);
  const std::uint64_t in_place = differ(a.numel, b.numel) | differ(a.root, b.root) |
                                 differ(a.scope, b.scope) | differ(a.site.line, b.site.line) |
                                 differ(a.site.column, b.site.column);
  return (in_kind | in_place) == 0 && a.site.file == b.site.file;
}

// True for operations with lists, outputs or factors: each member's call is kept.
bool needs_every_op(const Op& op);

// The outcome of an arrived member in a slot whose calls do not agree. Regular slots need none of this.
enum class Fate : std::uint8_t { hangs, completes, fails, crashes };

// What keeps a member in its call, as its transport sees it.
struct Stuck {
  bool in_send = false;     // it waits for its message to be taken, not for one to arrive
  std::vector<Rank> peers;  // group ranks that it has messages in flight with
};

struct Slot {
  enum class Phase : std::uint8_t {
    collecting,  // members are missing
    full,        // all members have arrived; not completed yet
    done,        // completed for all members
    irregular,   // calls disagree: `fates` has the outcome of each member
  };

  std::int64_t seq = 0;
  Phase phase = Phase::collecting;
  bool uniform = true;             // every tensor so far is uniform and of the reference's call
  bool differs = false;            // some call is not the reference's, or its parts do not fit the others'
  bool uneven = false;             // some call has parts of different sizes
  bool raises = false;             // some call was accepted, and the backend may raise when it runs it
  bool given_up = false;           // some rank's wait here ended without a completion
  bool lets_some_through = false;  // some member is in `through`
  bool plain = false;              // for a call like the reference, only its tensor is noted
  Rank arrived = 0;
  const Op* like = nullptr;       // the shared call that the reference was made from; else null
  Op reference;                   // the first arrival's call
  std::vector<Storage*> tensors;  // by group rank; null: has not arrived (`no_tensor` for barrier)
  std::vector<Bits> values;       // by group rank: uniform contributions
  std::vector<Op> deviants;       // calls that differ from `reference` in anything a report shows
  std::vector<std::int32_t>
      deviant_of;             // by group rank: index into `deviants`, -1: none; empty while none deviates
  std::vector<Op> ops;        // by group rank; only for operations with lists or outputs
  std::vector<Rank> waiters;  // global ranks blocked here, in order of arrival
  std::vector<Fate> fates;    // by group rank; irregular slots only
  std::vector<Stuck> stuck;   // by group rank; empty until asked for
  std::vector<bool> through;  // by group rank: got through while others were missing; empty: none did
  std::vector<std::string> failures;  // by group rank; texts of `fails` and `crashes`
  std::vector<Tensor> retained;       // what asynchronous callers need not keep alive
  std::vector<std::unique_ptr<TensorList>> retained_lists;
  std::vector<std::unique_ptr<SplitSizes>> retained_splits;
  std::vector<Time> arrivals;  // by group rank; only while a timeline is recorded

  // The member continues while others are missing.
  void let_through(Rank rank) {
    lets_some_through = true;
    through.resize(tensors.size());
    through[static_cast<std::size_t>(rank)] = true;
  }
  bool is_through(Rank rank) const { return lets_some_through && through[static_cast<std::size_t>(rank)]; }
  bool has(Rank rank) const { return tensors[static_cast<std::size_t>(rank)] != nullptr; }
};

// Before a member's first call.
inline constexpr Device no_device{DeviceType::meta, -1};

// The slots of one group.
class GroupMatcher {
 public:
  explicit GroupMatcher(Rank group_size);

  // Adds the next call of `op.rank` (inside the group). The slot stays valid until it is retired.
  Slot& arrive(const Op& op) {
    expects(op.rank >= 0 && op.rank < size_, "a call comes from a member of its group");
    Slot& slot =
        slot_at(next_[static_cast<std::size_t>(op.rank)]++);  // counted: a member reaches a slot once
    enter(slot, op);
    return slot;
  }
  // The member makes no call of this number.
  void pass(Rank rank) { slot_at(next_[static_cast<std::size_t>(rank)]++); }
  // The same for a call that equals `call` except for its rank and tensor; `call` has to stay in place while the slot
  // fills. For operations without lists and outputs, of a rank whose device is known.
  Slot& arrive_alike(const Op& call, Rank rank, Storage* input);
  // The same once `slot` is known to be the member's next and `slot.like` to be its call. True if the slot is full now.
  bool arrive_like(Slot& slot, Rank member, Storage* input) {
    const auto rank = static_cast<std::size_t>(member);
    expects(next_[rank]++ == slot.seq, "a member's calls come in order");
    expects(slot.tensors[rank] == nullptr, "a member enters a slot once");
    seat(slot, rank, input != nullptr ? input : nothing());
    return slot.phase == Slot::Phase::full;
  }

  // Withdraws the call of a member that died while others were missing. The slot is still collecting.
  void withdraw(Slot& slot, Rank rank);

  // The slot of `seq`; null when it has been retired or no member has reached it yet.
  Slot* find(std::int64_t seq) { return is_live(seq) ? ring_[index(seq)].get() : nullptr; }
  const Slot* find(std::int64_t seq) const { return is_live(seq) ? ring_[index(seq)].get() : nullptr; }

  // The call of a member that has reached `slot`.
  Op op_of(const Slot& slot, Rank rank) const;

  // Forgets slots that are done, oldest first. Later slots reuse their memory.
  void retire();

  // The last slot that completed for all members: its number and call.
  struct LastDone {
    std::int64_t seq;
    Op op;
  };
  const std::optional<LastDone>& last_done() const { return last_done_; }

  Rank size() const { return size_; }
  std::int64_t first_live() const { return base_; }  // slots below are retired: done for all members
  std::int64_t end() const { return end_; }          // one past the latest slot
  std::int64_t calls_of(Rank rank) const { return next_[static_cast<std::size_t>(rank)]; }

  // The device a member used on this group, from its first call on; for stray-device checks.
  std::optional<Device> device_of(Rank rank) const;
  // Sets the device of a member's first call, which may be queued long before it arrives.
  void use_device(Rank rank, Device device) {
    Device& used = devices_[static_cast<std::size_t>(rank)];
    if (used == no_device) [[unlikely]] {
      used = device;
    }
  }
  bool uses(Rank rank, Device device) const { return devices_[static_cast<std::size_t>(rank)] == device; }

 private:
  void enter(Slot& slot, const Op& op) {
    if (!slot.plain || !same_in_reports(slot.reference, op)) [[unlikely]] {
      note(slot, op);
    }
    seat(slot, static_cast<std::size_t>(op.rank), op.tensors.input != nullptr ? op.tensors.input : nothing());
  }
  void note(Slot& slot, const Op& op);
  void empty(Slot& slot) const;
  Slot& slot_at(std::int64_t seq) {
    expects(seq >= base_ && seq <= end_, "a rank's next call is at most one beyond the latest slot");
    return seq == end_ ? open_slot() : *ring_[index(seq)];
  }
  void join(Slot& slot, const Op& call, Rank member, Storage* input) const;
  // The call is in the slot; adds its tensor.
  [[gnu::always_inline]] void seat(Slot& slot, std::size_t rank, Storage* tensor) {
    slot.tensors[rank] = tensor;
    slot.values[rank] = tensor->value;
    slot.uniform = slot.uniform && tensor->form == Storage::Form::uniform;
    if (++slot.arrived == size_) [[unlikely]] {
      fill_up(slot);
    }
  }
  // Replaces the tensor of an operation without one, so that "has arrived" is one comparison.
  static Storage* nothing() { return &no_tensor; }
  static void fill_up(Slot& slot);
  bool is_live(std::int64_t seq) const { return seq >= base_ && seq < end_; }
  Slot& open_slot();
  void grow();
  std::size_t index(std::int64_t seq) const { return static_cast<std::size_t>(seq) & (ring_.size() - 1); }

  static Storage no_tensor;

  Rank size_;
  std::int64_t base_ = 0;  // invariant: base_ <= end_ <= base_ + ring_.size()
  std::int64_t end_ = 0;
  std::vector<std::unique_ptr<Slot>> ring_;  // a power of two of slots; slot s at index(s)
  std::vector<std::int64_t> next_;           // by rank: the number of its next call
  std::vector<Device> devices_;              // by rank; `no_device` before its first call
  std::optional<LastDone> last_done_;
};

// One variant of a slot: members (group ranks) whose calls agree.
struct OpVariant {
  Op op;
  std::vector<Rank> ranks;
};

// The largest first, ties by lowest rank.
void sort_variants(std::vector<OpVariant>& variants);
// The arrivals of a slot, grouped by same_call, sorted.
std::vector<OpVariant> variants_by_call(const GroupMatcher& matcher, const Slot& slot);
// The same, grouped by pairing.
std::vector<OpVariant> variants_by_pairing(const GroupMatcher& matcher, const Slot& slot,
                                           const ScopeTable& scopes);

// True when two calls in the slot provably came from different places.
bool is_mispaired(const Slot& slot, const ScopeTable& scopes);

}  // namespace rollcall::check
