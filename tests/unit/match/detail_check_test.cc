#include "sim/match/detail_check.h"
#include "tests/catch.h"

namespace rollcall::sim::detail_check_test {
namespace {
using check::GroupMatcher;

struct SlotOf {
  // One call per member, by group rank.
  explicit SlotOf(std::vector<Op> calls) : matcher(static_cast<Rank>(calls.size())) {
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      calls[rank].rank = static_cast<Rank>(rank);
      matcher.arrive(calls[rank]);
    }
  }
  std::vector<std::string> mismatch() const {
    return detail_mismatch(matcher, *matcher.find(0), traits_of(TorchRelease::v1_13));
  }

  GroupMatcher matcher;
};

Op call(OpKind kind, const Tensor& tensor) {
  Op op;
  op.kind = kind;
  op.dtype = tensor.dtype();
  op.device = tensor.device();
  op.numel = tensor.numel();
  op.tensors.input = tensor.storage();
  return op;
}

}  // namespace

TEST_CASE("DETAIL raises on every rank, naming a rank that differs", "[detail_check]") {
  const Tensor four = Tensor::ones({4});
  const Tensor one = Tensor::ones({1});
  const auto texts =
      SlotOf({call(OpKind::all_reduce, four), call(OpKind::all_reduce, four), call(OpKind::all_reduce, one)})
          .mismatch();
  REQUIRE(texts.size() == 3);
  CHECK_THAT(texts[0], StartsWith("Detected mismatch between collectives on ranks. Rank 0 is running "
                                  "collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[4]"));
  CHECK_THAT(texts[0], Contains("but Rank 2 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE, "
                                "TensorShape=[1]"));
  CHECK_THAT(texts[2], Contains("Rank 2 is running"));
  CHECK_THAT(texts[2], Contains("but Rank 0 is running"));
}

TEST_CASE("DETAIL compares operation, shape and dtype", "[detail_check]") {
  const Tensor tensor = Tensor::ones({2, 3});
  const Tensor flat = Tensor::ones({6});
  const Tensor other = Tensor::ones({2, 3}, Dtype::float64);
  CHECK(SlotOf({call(OpKind::all_reduce, tensor), call(OpKind::all_reduce, tensor)}).mismatch().empty());
  CHECK_FALSE(SlotOf({call(OpKind::all_reduce, tensor), call(OpKind::broadcast, tensor)}).mismatch().empty());
  CHECK_FALSE(SlotOf({call(OpKind::all_reduce, tensor), call(OpKind::all_reduce, flat)}).mismatch().empty());
  CHECK_FALSE(SlotOf({call(OpKind::all_reduce, tensor), call(OpKind::all_reduce, other)}).mismatch().empty());
}

TEST_CASE("DETAIL looks at neither reduce op nor root", "[detail_check]") {
  const Tensor tensor = Tensor::ones({4});
  Op maximum = call(OpKind::all_reduce, tensor);
  maximum.reduce = ReduceOp::max;
  CHECK(SlotOf({call(OpKind::all_reduce, tensor), maximum}).mismatch().empty());
  Op from_one = call(OpKind::broadcast, tensor);
  from_one.root = 1;
  CHECK(SlotOf({call(OpKind::broadcast, tensor), from_one}).mismatch().empty());
}

TEST_CASE("a barrier has no shape to compare", "[detail_check]") {
  const auto texts = SlotOf({Op{}, call(OpKind::all_reduce, Tensor::ones({1}))}).mismatch();
  REQUIRE(texts.size() == 2);
  CHECK_THAT(texts[0], Contains("CollectiveFingerPrint(OpType=BARRIER), but Rank 1"));
}

TEST_CASE("DETAIL does not compare a monitored barrier", "[detail_check]") {
  Op monitored;
  monitored.kind = OpKind::monitored_barrier;
  CHECK(SlotOf({monitored, monitored}).mismatch().empty());
}

}  // namespace rollcall::sim::detail_check_test
