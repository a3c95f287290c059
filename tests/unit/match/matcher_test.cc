#include "sim/match/matcher.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/catch.h"
#include "tests/unit/match/evidence_builder.h"

namespace rollcall::check::matcher_test {
namespace {

using test::all_reduce;
using test::broadcast;

// Returns `op` of one member, without a tensor: to pair calls, the matcher only needs to know that they arrived.
Op of_member(Rank rank, Op op) {
  op.rank = rank;
  return op;
}

Op list_op(OpKind kind, std::int64_t numel) {
  Op op;
  op.kind = kind;
  op.numel = numel;
  return op;
}

std::vector<std::vector<Rank>> ranks_of(const std::vector<OpVariant>& variants) {
  std::vector<std::vector<Rank>> ranks;
  for (const OpVariant& variant : variants) {
    ranks.push_back(variant.ranks);
  }
  return ranks;
}

// All slots are done up to `end`.
void finish_all(GroupMatcher& matcher) {
  for (std::int64_t seq = matcher.first_live(); seq < matcher.end(); ++seq) {
    matcher.find(seq)->phase = Slot::Phase::done;
  }
  matcher.retire();
}

}  // namespace

TEST_CASE("the k-th call of every member meets in slot k", "[matcher]") {
  GroupMatcher matcher(2);
  CHECK(matcher.arrive(of_member(0, all_reduce(1))).seq == 0);
  CHECK(matcher.arrive(of_member(0, all_reduce(2))).seq == 1);
  CHECK(matcher.arrive(of_member(1, all_reduce(1))).seq == 0);
  CHECK(matcher.find(0)->phase == Slot::Phase::full);
  CHECK(matcher.find(1)->phase == Slot::Phase::collecting);
  CHECK(matcher.calls_of(0) == 2);
  CHECK(matcher.calls_of(1) == 1);
  CHECK(matcher.find(2) == nullptr);
}

TEST_CASE("a call that was taken back leaves a slot as if it had never come", "[matcher]") {
  GroupMatcher matcher(3);
  matcher.arrive(of_member(0, broadcast(4, 1)));  // the first call is the slot's reference
  matcher.arrive(of_member(1, all_reduce(4)));
  Slot& slot = *matcher.find(0);
  CHECK(slot.differs);
  matcher.withdraw(slot, 0);
  CHECK_FALSE(slot.has(0));
  CHECK_FALSE(slot.differs);
  CHECK(slot.arrived == 1);
  CHECK(ranks_of(variants_by_call(matcher, slot)) == std::vector<std::vector<Rank>>{{1}});
  matcher.arrive(of_member(2, all_reduce(4)));
  CHECK(slot.phase == Slot::Phase::collecting);
}

TEST_CASE("a group of one fills its slots alone", "[matcher]") {
  GroupMatcher matcher(1);
  CHECK(matcher.arrive(of_member(0, test::barrier())).phase == Slot::Phase::full);
}

TEST_CASE("calls agree in operation, dtype, reduction, root and size", "[matcher]") {
  CHECK(same_call(all_reduce(4), all_reduce(4)));
  CHECK_FALSE(same_call(all_reduce(4), test::barrier()));
  CHECK_FALSE(same_call(all_reduce(4), all_reduce(5)));
  CHECK_FALSE(same_call(all_reduce(4), all_reduce(4, Dtype::float64)));
  CHECK_FALSE(same_call(all_reduce(4), all_reduce(4, Dtype::float32, ReduceOp::max)));
  CHECK_FALSE(same_call(broadcast(4, 0), broadcast(4, 1)));
  Op elsewhere = test::at_line(7, all_reduce(4));
  elsewhere.device = {DeviceType::cuda, 3};
  elsewhere.async_op = true;
  CHECK(same_call(all_reduce(4), elsewhere));  // the place and the form of a call do not matter
}

namespace {

// Rank 0 sends 1 and 2 elements, rank 1 sends `back` and 8.
struct AllToAll {
  explicit AllToAll(std::int64_t back) : from_1{Tensor::zeros({back}), Tensor::zeros({8})} {}

  Op of(Rank rank) const {
    Op op = list_op(OpKind::all_to_all, rank == 0 ? 3 : from_1[0].numel() + 8);
    op.rank = rank;
    op.uneven = true;
    op.tensors.inputs = rank == 0 ? &from_0 : &from_1;
    op.tensors.outputs = rank == 0 ? &to_0 : &to_1;
    return op;
  }

  TensorList from_0{Tensor::zeros({1}), Tensor::zeros({2})};
  TensorList from_1;
  TensorList to_0{Tensor::zeros({1}), Tensor::zeros({4})};
  TensorList to_1{Tensor::zeros({2}), Tensor::zeros({8})};
};

}  // namespace

TEST_CASE("members of an all_to_all may send different amounts", "[matcher]") {
  GroupMatcher matcher(2);
  const AllToAll calls(4);
  matcher.arrive(calls.of(0));
  const Slot& slot = matcher.arrive(calls.of(1));
  CHECK_FALSE(slot.differs);
  CHECK(matcher.op_of(slot, 0).numel == 3);
  CHECK(matcher.op_of(slot, 1).numel == 12);
  CHECK_FALSE(same_call(list_op(OpKind::all_to_all_single, 3), list_op(OpKind::all_to_all_single, 9)));
}

TEST_CASE("a part that its receiver has no room for is a disagreement", "[matcher]") {
  GroupMatcher matcher(2);
  const AllToAll calls(5);
  matcher.arrive(calls.of(0));
  const Slot& slot = matcher.arrive(calls.of(1));
  CHECK(slot.differs);
  CHECK(ranks_of(variants_by_call(matcher, slot)) == std::vector<std::vector<Rank>>{{0}, {1}});
}

TEST_CASE("a slot gives back every member's own call", "[matcher]") {
  GroupMatcher matcher(4);
  const Tensor tensor = Tensor::ones({4});
  for (const Rank rank : {2, 0, 3, 1}) {
    Op op = of_member(rank, all_reduce(4));
    op.device = {DeviceType::cuda, static_cast<std::int16_t>(rank)};
    op.tensors.input = tensor.storage();
    if (rank == 3) {
      op = test::at_line(30, op);
    }
    if (rank == 1) {
      op.dtype = Dtype::int32;
    }
    matcher.arrive(op);
  }
  const Slot& slot = *matcher.find(0);
  CHECK(slot.differs);
  CHECK(slot.deviants.size() == 2);  // another line is reported, but is not a disagreement
  for (Rank rank = 0; rank < 4; ++rank) {
    const Op op = matcher.op_of(slot, rank);
    CHECK(op.rank == rank);
    CHECK(op.device.index == rank);
    CHECK(op.tensors.input == tensor.storage());
    CHECK(op.site.line == (rank == 3 ? 30u : 0u));
    CHECK(op.dtype == (rank == 1 ? Dtype::int32 : Dtype::float32));
  }
}

TEST_CASE("operations with lists keep every member's tensors, whatever the others call", "[matcher]") {
  const TensorList outputs{Tensor::zeros({1}), Tensor::zeros({1}), Tensor::zeros({1})};
  std::array<Rank, 3> order{0, 1, 2};
  do {
    GroupMatcher matcher(3);
    for (const Rank rank : order) {
      Op op = of_member(rank, rank == 1 ? all_reduce(1) : list_op(OpKind::all_gather, 1));
      op.tensors.input = outputs[static_cast<std::size_t>(rank)].storage();
      op.tensors.outputs = rank == 1 ? nullptr : &outputs;
      matcher.arrive(op);
    }
    const Slot& slot = *matcher.find(0);
    CHECK(slot.differs);
    for (Rank rank = 0; rank < 3; ++rank) {
      const Op op = matcher.op_of(slot, rank);
      CHECK(op.kind == (rank == 1 ? OpKind::all_reduce : OpKind::all_gather));
      CHECK(op.tensors.input == outputs[static_cast<std::size_t>(rank)].storage());
      CHECK((op.tensors.outputs == nullptr) == (rank == 1));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("barriers have come although they bring no tensor", "[matcher]") {
  GroupMatcher matcher(2);
  const Slot& slot = matcher.arrive(of_member(1, test::barrier()));
  CHECK(slot.has(1));
  CHECK_FALSE(slot.has(0));
  CHECK(matcher.op_of(slot, 1).tensors.input == nullptr);
}

TEST_CASE("one dense tensor is enough to leave the uniform path", "[matcher]") {
  GroupMatcher matcher(2);
  const Tensor uniform = Tensor::ones({2});
  const Tensor dense = Tensor::of({1, 2});
  Op op = of_member(0, all_reduce(2));
  op.tensors.input = uniform.storage();
  CHECK(matcher.arrive(op).uniform);
  op.rank = 1;
  op.tensors.input = dense.storage();
  CHECK_FALSE(matcher.arrive(op).uniform);
}

TEST_CASE("a member's first device is remembered for the group", "[matcher]") {
  GroupMatcher matcher(2);
  CHECK(matcher.device_of(0) == std::nullopt);
  Op op = of_member(0, all_reduce(1));
  op.device = {DeviceType::cuda, 5};
  matcher.arrive(op);
  op.device = {DeviceType::cuda, 6};
  matcher.arrive(op);
  CHECK(matcher.device_of(0) == Device{DeviceType::cuda, 5});
  CHECK(matcher.uses(0, {DeviceType::cuda, 5}));
  CHECK_FALSE(matcher.uses(1, {DeviceType::cuda, 5}));
}

TEST_CASE("one member may be hundreds of calls ahead", "[matcher]") {
  GroupMatcher matcher(2);
  constexpr std::int64_t ahead = 300;
  for (std::int64_t i = 0; i < ahead; ++i) {
    CHECK(matcher.arrive(of_member(0, all_reduce(i))).seq == i);
  }
  for (std::int64_t i = 0; i < ahead; ++i) {
    const Slot& slot = matcher.arrive(of_member(1, all_reduce(i)));
    REQUIRE(slot.seq == i);
    REQUIRE_FALSE(slot.differs);
    REQUIRE(slot.reference.numel == i);  // growing did not move a slot to another's place
  }
  CHECK(matcher.first_live() == 0);
  finish_all(matcher);
  CHECK(matcher.first_live() == ahead);
  CHECK(matcher.find(ahead - 1) == nullptr);
  CHECK(matcher.last_done()->seq == ahead - 1);
  CHECK(matcher.last_done()->op.numel == ahead - 1);
}

TEST_CASE("a slot stays where it is while the ring grows around it", "[matcher]") {
  GroupMatcher matcher(2);
  Slot& first = matcher.arrive(of_member(0, all_reduce(1)));
  for (int i = 0; i < 50; ++i) {
    matcher.arrive(of_member(0, all_reduce(1)));
  }
  CHECK(matcher.find(0) == &first);
}

TEST_CASE("slots are forgotten oldest first, and not past one that is alive", "[matcher]") {
  GroupMatcher matcher(1);
  for (int i = 0; i < 4; ++i) {
    matcher.arrive(of_member(0, all_reduce(i)));
  }
  matcher.find(1)->phase = Slot::Phase::done;
  matcher.find(2)->phase = Slot::Phase::done;
  matcher.retire();
  CHECK(matcher.first_live() == 0);
  CHECK_FALSE(matcher.last_done().has_value());
  matcher.find(0)->phase = Slot::Phase::done;
  matcher.retire();
  CHECK(matcher.first_live() == 3);
  CHECK(matcher.last_done()->seq == 2);
}

TEST_CASE("a reused slot remembers nothing of its former life", "[matcher]") {
  GroupMatcher matcher(2);
  matcher.arrive(of_member(0, all_reduce(4)));
  Slot& old = matcher.arrive(of_member(1, list_op(OpKind::all_gather, 3)));
  old.waiters.push_back(0);
  old.fates.assign(2, Fate::crashes);
  old.failures.assign(2, "gone");
  old.retained.push_back(Tensor::ones({1}));
  old.arrivals.assign(2, 7);
  finish_all(matcher);
  for (int i = 0; i < 8; ++i) {
    const Slot& slot = matcher.arrive(of_member(1, all_reduce(9)));
    CHECK(slot.arrived == 1);
    CHECK_FALSE(slot.has(0));
    CHECK_FALSE(slot.differs);
    CHECK(slot.deviants.empty());
    CHECK(slot.ops.empty());
    CHECK(slot.waiters.empty());
    CHECK(slot.fates.empty());
    CHECK(slot.failures.empty());
    CHECK(slot.retained.empty());
    CHECK(slot.arrivals.empty());
    CHECK(slot.phase == Slot::Phase::collecting);
    matcher.arrive(of_member(0, all_reduce(9)));
    CHECK_FALSE(slot.differs);
    finish_all(matcher);
  }
}

TEST_CASE("variants come majority first, then by lowest rank", "[matcher]") {
  GroupMatcher matcher(6);
  for (Rank rank = 0; rank < 6; ++rank) {
    matcher.arrive(of_member(rank, all_reduce(rank == 0 ? 1 : rank < 3 ? 2 : rank < 5 ? 3 : 4)));
  }
  const auto variants = variants_by_call(matcher, *matcher.find(0));
  CHECK(ranks_of(variants) == std::vector<std::vector<Rank>>{{1, 2}, {3, 4}, {0}, {5}});
  CHECK(variants[2].op.numel == 1);
}

TEST_CASE("variants do not depend on who came first", "[matcher]") {
  std::array<Rank, 5> order{0, 1, 2, 3, 4};
  do {
    GroupMatcher matcher(5);
    for (const Rank rank : order) {
      const Op op = all_reduce(rank % 2 == 0 ? 4 : 8);
      matcher.arrive(of_member(rank, test::at_line(static_cast<std::uint32_t>(10 + rank), op)));
    }
    const Slot& slot = *matcher.find(0);
    REQUIRE(slot.differs);
    const auto variants = variants_by_call(matcher, slot);
    REQUIRE(ranks_of(variants) == std::vector<std::vector<Rank>>{{0, 2, 4}, {1, 3}});
    REQUIRE(variants[0].op.site.line == 10);  // a variant shows its lowest rank's call
    REQUIRE(variants[1].op.site.line == 11);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("variants of a slot that nobody else reached hold only who came", "[matcher]") {
  GroupMatcher matcher(3);
  matcher.arrive(of_member(2, all_reduce(4)));
  CHECK(ranks_of(variants_by_call(matcher, *matcher.find(0))) == std::vector<std::vector<Rank>>{{2}});
}

TEST_CASE("a thousand members and two deviants are three variants", "[matcher]") {
  GroupMatcher matcher(1000);
  for (Rank rank = 999; rank >= 0; --rank) {
    matcher.arrive(of_member(rank, all_reduce(rank == 500 ? 3 : rank == 700 ? 5 : 4)));
  }
  const auto variants = variants_by_call(matcher, *matcher.find(0));
  REQUIRE(variants.size() == 3);
  CHECK(variants[0].ranks.size() == 998);
  CHECK(variants[0].op.rank == 0);
  CHECK(variants[1].ranks == std::vector<Rank>{500});
  CHECK(variants[2].ranks == std::vector<Rank>{700});
}

namespace {

// True if one member per given op would be mispaired; REQUIREs that their order does not matter.
bool mispaired_in_any_order(std::vector<Op> ops, const ScopeTable& scopes) {
  std::vector<std::size_t> order(ops.size());
  std::iota(order.begin(), order.end(), 0);
  std::optional<bool> answer;
  do {
    GroupMatcher matcher(static_cast<Rank>(ops.size()));
    for (const std::size_t i : order) {
      matcher.arrive(of_member(static_cast<Rank>(i), ops[i]));
    }
    const bool mispaired = is_mispaired(*matcher.find(0), scopes);
    REQUIRE(answer.value_or(mispaired) == mispaired);
    answer = mispaired;
  } while (std::next_permutation(order.begin(), order.end()));
  return *answer;
}

}  // namespace

TEST_CASE("labels pair with their own kind and with unlabeled calls", "[matcher]") {
  ScopeTable scopes;
  Op plain = all_reduce(1);
  Op loss = plain;
  loss.scope = scopes.enter(no_scope, "loss");
  Op norm = plain;
  norm.scope = scopes.enter(no_scope, "norm");
  Op nested_loss = plain;
  nested_loss.scope = scopes.enter(scopes.enter(no_scope, "epoch"), "loss");
  CHECK_FALSE(mispaired_in_any_order({plain, plain, plain}, scopes));
  CHECK_FALSE(mispaired_in_any_order({loss, plain, loss}, scopes));
  CHECK_FALSE(mispaired_in_any_order({loss, nested_loss}, scopes));
  CHECK(mispaired_in_any_order({loss, norm}, scopes));
  CHECK(mispaired_in_any_order({plain, loss, plain, norm}, scopes));
}

TEST_CASE("the Join protocol's calls pair with nothing else", "[matcher]") {
  ScopeTable scopes;
  Op plain = all_reduce(1);
  Op loss = plain;
  loss.scope = scopes.enter(no_scope, "loss");
  Op notify = plain;
  notify.scope = scopes.enter_paired(no_scope, "join.notify", "join.presence");
  Op count = plain;
  count.scope = scopes.enter_paired(no_scope, "join.count", "join.presence");
  Op inner = plain;
  inner.scope = scopes.enter(notify.scope, "loss");
  CHECK_FALSE(mispaired_in_any_order({notify, count, notify}, scopes));
  CHECK_FALSE(mispaired_in_any_order({inner, count}, scopes));  // strictness is inherited
  CHECK(mispaired_in_any_order({notify, plain}, scopes));
  CHECK(mispaired_in_any_order({notify, loss}, scopes));
}

TEST_CASE("a label that is called like a joinable does not hide an unlabeled call", "[matcher]") {
  ScopeTable scopes;
  Op plain = all_reduce(1);
  Op label = plain;
  label.scope = scopes.enter(no_scope, "counter");
  Op joinable = plain;
  joinable.scope = scopes.enter_paired(no_scope, "counter.forward", "counter");
  CHECK_FALSE(mispaired_in_any_order({label, joinable}, scopes));
  CHECK(mispaired_in_any_order({label, plain, joinable}, scopes));
}

TEST_CASE("a user's label inside a hook says nothing, a strict pairing does", "[matcher]") {
  ScopeTable scopes;
  Op forward = all_reduce(1);
  forward.scope = scopes.enter(no_scope, "forward");
  Op shadow = all_reduce(1);
  shadow.scope = scopes.enter(no_scope, "my hook");
  CHECK(mispaired_in_any_order({forward, shadow}, scopes));
  shadow.shadow = true;
  CHECK_FALSE(mispaired_in_any_order({forward, shadow}, scopes));
  shadow.scope = scopes.enter_paired(no_scope, "counter.main_hook", "counter");
  CHECK(mispaired_in_any_order({forward, shadow}, scopes));
}

TEST_CASE("pairing variants group by origin, not by call", "[matcher]") {
  ScopeTable scopes;
  GroupMatcher matcher(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    Op op = of_member(rank, all_reduce(1));
    op.scope = scopes.enter(no_scope, rank == 1 ? "norm" : "loss");
    matcher.arrive(op);
  }
  const auto variants = variants_by_pairing(matcher, *matcher.find(0), scopes);
  CHECK(ranks_of(variants) == std::vector<std::vector<Rank>>{{0, 2, 3}, {1}});
}

}  // namespace rollcall::check::matcher_test
