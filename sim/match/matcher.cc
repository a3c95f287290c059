#include "sim/match/matcher.h"

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/expects.h"
#include "sim/c10d/apply.h"

namespace rollcall::check {
namespace {

// True if, in a full slot, every member sends what its receivers expect.
bool parts_fit_each_other(const Slot& slot) {
  std::vector<OpTensors> members;
  for (const Op& op : slot.ops) {
    members.push_back(op.tensors);
  }
  return parts_fit(slot.reference, members);
}

}  // namespace

bool needs_every_op(const Op& op) {
  return has_tensor(op.kind) && (!has_uniform_form(op.kind) || op.reduce == ReduceOp::premul_sum);
}

bool same_call(const Op& a, const Op& b) {
  if (a.kind != b.kind || a.dtype != b.dtype || a.reduce != b.reduce || a.root != b.root) {
    return false;
  }
  // Members may send different amounts where every call says how much it expects from each member.
  return a.numel == b.numel || (a.uneven && b.uneven);
}

namespace {

// The rare parts of a call are out of line, so that arrive() stays small.

[[gnu::noinline]] void note_deviant(Slot& slot, const Op& op, Rank size) {
  expects(slot.arrived > 0, "only a call after the first can differ from it");
  if (slot.deviants.empty()) {
    slot.deviant_of.assign(static_cast<std::size_t>(size), -1);
  }
  slot.deviant_of[static_cast<std::size_t>(op.rank)] = static_cast<std::int32_t>(slot.deviants.size());
  slot.deviants.push_back(op);
  slot.differs = slot.differs || !same_call(slot.reference, op);
}

[[gnu::noinline]] void keep_op(Slot& slot, const Op& op, Rank size) {
  expects(op.rank >= 0 && op.rank < size, "a kept call is a member's");
  slot.ops.resize(static_cast<std::size_t>(size));
  slot.ops[static_cast<std::size_t>(op.rank)] = op;
  slot.uneven = slot.uneven || op.uneven;
}

}  // namespace

Storage GroupMatcher::no_tensor;

[[gnu::noinline]] void GroupMatcher::fill_up(Slot& slot) {
  expects(slot.phase == Slot::Phase::collecting, "a slot fills up once");
  slot.phase = Slot::Phase::full;
  if (slot.uneven && !slot.differs) {
    slot.differs = !parts_fit_each_other(slot);
  }
}

GroupMatcher::GroupMatcher(Rank group_size)
    : size_(group_size),
      ring_(2),
      next_(static_cast<std::size_t>(group_size), 0),
      devices_(static_cast<std::size_t>(group_size), no_device) {
  expects(group_size >= 0, "a group has members, or none");
}

// Records more of a call than its tensor: for the first one, one that differs, one with lists, and a rank's first.
[[gnu::noinline]] void GroupMatcher::note(Slot& slot, const Op& op) {
  expects(slot.phase == Slot::Phase::collecting, "a call enters a slot that is not full");
  expects(!slot.has(op.rank), "a member enters a slot once");
  if (slot.arrived == 0) {
    slot.reference = op;
    slot.plain = slot.seq != 0 && !needs_every_op(op);
  } else if (!same_in_reports(slot.reference, op)) {
    note_deviant(slot, op, size_);
  }
  if (needs_every_op(op)) {
    keep_op(slot, op, size_);
  }
  if (slot.seq == 0) {
    use_device(op.rank, op.device);
  }
}

void GroupMatcher::withdraw(Slot& slot, Rank rank) {
  expects(slot.phase == Slot::Phase::collecting && slot.has(rank), "a call that waits can be taken back");
  std::vector<Op> others;
  for (Rank member = 0; member < size_; ++member) {
    if (member != rank && slot.has(member)) {
      others.push_back(op_of(slot, member));
    }
  }
  empty(slot);
  for (const Op& op : others) {
    enter(slot, op);
  }
  expects(slot.arrived == static_cast<Rank>(others.size()), "the others are still there");
  expects(slot.phase == Slot::Phase::collecting, "a slot that lost a member is not full");
}

Slot& GroupMatcher::arrive_alike(const Op& call, Rank member, Storage* input) {
  const auto rank = static_cast<std::size_t>(member);
  Slot& slot = slot_at(next_[rank]++);
  expects(slot.tensors[rank] == nullptr, "a member enters a slot once");
  if (slot.like != &call) [[unlikely]] {
    join(slot, call, member, input);
  }
  seat(slot, rank, input != nullptr ? input : nothing());
  return slot;
}

// The first of several members with a shared call: the reference if it is the first of the slot, or one that deviates.
[[gnu::noinline]] void GroupMatcher::join(Slot& slot, const Op& call, Rank member, Storage* input) const {
  expects(!needs_every_op(call), "a call that members share has no lists and no outputs");
  expects(devices_[static_cast<std::size_t>(member)] != no_device, "a shared call is not a member's first");
  Op op = call;
  op.rank = member;
  op.device = devices_[static_cast<std::size_t>(member)];
  op.tensors = OpTensors(input);
  if (slot.arrived == 0) {
    slot.reference = op;
    slot.plain = slot.seq != 0;
  }
  if (same_in_reports(slot.reference, call)) {
    slot.like = &call;
  } else {
    note_deviant(slot, op, size_);
  }
}

Op GroupMatcher::op_of(const Slot& slot, Rank rank) const {
  expects(slot.has(rank), "only a member that has come has a call");
  if (!slot.ops.empty() && needs_every_op(slot.ops[static_cast<std::size_t>(rank)])) {
    return slot.ops[static_cast<std::size_t>(rank)];
  }
  if (!slot.deviants.empty() && slot.deviant_of[static_cast<std::size_t>(rank)] >= 0) {
    expects(slot.deviant_of[static_cast<std::size_t>(rank)] < static_cast<std::int32_t>(slot.deviants.size()),
            "a deviating call is in the slot's list");
    return slot.deviants[static_cast<std::size_t>(slot.deviant_of[static_cast<std::size_t>(rank)])];
  }
  Op op = slot.reference;
  op.rank = rank;
  op.device = devices_[static_cast<std::size_t>(rank)];
  Storage* tensor = slot.tensors[static_cast<std::size_t>(rank)];
  op.tensors = OpTensors(tensor == &no_tensor ? nullptr : tensor);
  return op;
}

std::optional<Device> GroupMatcher::device_of(Rank rank) const {
  expects(rank >= 0 && rank < size_, "a device is a member's");
  const Device device = devices_[static_cast<std::size_t>(rank)];
  return device == no_device ? std::nullopt : std::optional<Device>(device);
}

void GroupMatcher::retire() {
  while (base_ < end_ && ring_[index(base_)]->phase == Slot::Phase::done) {
    const Slot& slot = *ring_[index(base_)];
    expects(slot.seq == base_, "slots are retired in order");
    expects(slot.arrived == size_, "a slot is done when every member has come");
    last_done_ = LastDone{slot.seq, op_of(slot, 0)};  // not the reference: the order of arrival must not show
    ++base_;
  }
}

[[gnu::noinline]] Slot& GroupMatcher::open_slot() {
  if (end_ - base_ == static_cast<std::int64_t>(ring_.size())) {
    grow();
  }
  std::unique_ptr<Slot>& place = ring_[index(end_)];
  if (place == nullptr) {
    place = std::make_unique<Slot>();
  }
  Slot& slot = *place;
  slot.seq = end_++;
  slot.phase = Slot::Phase::collecting;
  slot.raises = false;
  slot.given_up = false;
  slot.lets_some_through = false;
  empty(slot);
  slot.waiters.clear();
  slot.fates.clear();
  slot.stuck.clear();
  slot.through.clear();
  slot.failures.clear();
  slot.retained.clear();
  slot.retained_lists.clear();
  slot.retained_splits.clear();
  slot.arrivals.clear();
  return slot;
}

// Resets a slot to one that no member has reached.
void GroupMatcher::empty(Slot& slot) const {
  const auto members = static_cast<std::size_t>(size_);
  slot.uniform = true;
  slot.differs = false;
  slot.uneven = false;
  slot.plain = false;
  slot.arrived = 0;
  slot.like = nullptr;
  slot.tensors.assign(members, nullptr);
  slot.values.resize(members);
  slot.deviants.clear();
  slot.ops.clear();
}

void GroupMatcher::grow() {
  // index() masks with the size, so it must be a power of two.
  expects((ring_.size() & (ring_.size() - 1)) == 0, "the ring's size is a power of two");
  std::vector<std::unique_ptr<Slot>> larger(ring_.size() * 2);
  for (std::int64_t seq = base_; seq < end_; ++seq) {
    larger[static_cast<std::size_t>(seq) & (larger.size() - 1)] = std::move(ring_[index(seq)]);
  }
  ring_ = std::move(larger);
}

namespace {

// Numbers by which calls are grouped: two are of one variant when they share one.
using Key = std::array<std::int64_t, 6>;
using Keys = std::vector<Key>;

// same_call() as keys: calls with parts of different sizes need not agree in numel.
Keys keys_by_call(const Op& op) {
  const Key exact{static_cast<std::int64_t>(op.kind),
                  static_cast<std::int64_t>(op.dtype),
                  static_cast<std::int64_t>(op.reduce),
                  op.root,
                  op.numel,
                  0};
  Keys keys{exact};
  if (op.uneven) {
    keys.push_back({exact[0], exact[1], exact[2], exact[3], 0, 1});
  }
  return keys;
}

// Groups the arrivals of a slot. Calls that do not deviate are one group from the start, so the cost is members +
// deviants * log(variants).
template <typename KeysOf>
std::vector<OpVariant> group_arrivals(const GroupMatcher& matcher, const Slot& slot, KeysOf&& keys_of) {
  std::vector<OpVariant> variants;
  std::map<Key, std::size_t> known;  // the first variant of each key
  const auto variant_of = [&](const Op& op) -> OpVariant& {
    const Keys keys = keys_of(op);
    std::size_t first = variants.size();
    for (const Key& key : keys) {
      const auto found = known.find(key);
      first = found != known.end() ? std::min(first, found->second) : first;
    }
    if (first == variants.size()) {
      variants.push_back({op, {}});
      for (const Key& key : keys) {
        known.try_emplace(key, first);
      }
    }
    return variants[first];
  };
  for (const Op& deviant : slot.deviants) {
    variant_of(deviant).ranks.push_back(deviant.rank);
  }
  std::vector<Rank>& regular = variant_of(slot.reference).ranks;
  for (Rank rank = 0; rank < matcher.size(); ++rank) {
    if (slot.has(rank) && (slot.deviants.empty() || slot.deviant_of[static_cast<std::size_t>(rank)] < 0)) {
      regular.push_back(rank);
    }
  }
  for (OpVariant& variant : variants) {
    expects(!variant.ranks.empty(), "somebody made every variant of a call");
    std::sort(variant.ranks.begin(), variant.ranks.end());
    variant.op = matcher.op_of(slot, variant.ranks.front());  // independent of the order of arrival
  }
  sort_variants(variants);
  return variants;
}

// A hook's calls have labels of their own, so a user's label means nothing there; strict pairings do.
Pairing pairing_of(const Op& op, const ScopeTable& scopes) {
  const Pairing pairing = scopes.pairing(op.scope);
  return op.shadow && !pairing.strict ? Pairing{} : pairing;
}

}  // namespace

void sort_variants(std::vector<OpVariant>& variants) {
  std::sort(variants.begin(), variants.end(), [](const OpVariant& a, const OpVariant& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size()
                                            : a.ranks.front() < b.ranks.front();
  });
}

std::vector<OpVariant> variants_by_call(const GroupMatcher& matcher, const Slot& slot) {
  expects(slot.arrived > 0, "a slot that nobody has come to has no calls to compare");
  std::vector<OpVariant> variants = group_arrivals(matcher, slot, keys_by_call);
  if (slot.differs && variants.size() == 1) {
    // Only the sizes of parts disagree, between pairs of ranks: no two ranks form a variant.
    const std::vector<Rank> ranks = std::move(variants.front().ranks);
    variants.clear();
    for (const Rank rank : ranks) {
      variants.push_back({matcher.op_of(slot, rank), {rank}});
    }
  }
  return variants;
}

std::vector<OpVariant> variants_by_pairing(const GroupMatcher& matcher, const Slot& slot,
                                           const ScopeTable& scopes) {
  return group_arrivals(matcher, slot, [&scopes](const Op& op) {
    const Pairing pairing = pairing_of(op, scopes);
    Key key{};
    key[0] = pairing.id;
    key[1] = pairing.strict ? 1 : 0;
    return Keys{key};
  });
}

bool is_mispaired(const Slot& slot, const ScopeTable& scopes) {
  // Calls that share the reference's scope share its pairing, so only deviants can differ. Labels are an equivalence
  // among labeled calls: one labeled call is enough to compare with.
  Pairing labeled = pairing_of(slot.reference, scopes);
  bool any_unlabeled = labeled.id == 0;
  for (const Op& deviant : slot.deviants) {
    const Pairing pairing = pairing_of(deviant, scopes);
    if (!may_pair(labeled, pairing)) {
      return true;
    }
    any_unlabeled = any_unlabeled || pairing.id == 0;
    if (labeled.id == 0 || pairing.strict) {
      labeled = pairing;
    }
  }
  return any_unlabeled && labeled.strict;
}

}  // namespace rollcall::check
