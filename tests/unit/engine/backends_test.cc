#include "sim/engine/backends.h"
#include "tests/catch.h"

namespace rollcall::sim::backends_test {
namespace {

const TorchTraits& old_torch = traits_of(TorchRelease::v1_13);

using check::Fate;

Op call(OpKind kind, const Tensor& tensor) {
  Op op;
  op.kind = kind;
  op.dtype = tensor.dtype();
  op.device = tensor.device();
  op.numel = tensor.numel();
  op.tensors.input = tensor.storage();
  return op;
}

Op broadcast_from(Rank root, const Tensor& tensor) {
  Op op = call(OpKind::broadcast, tensor);
  op.root = root;
  return op;
}

// Settles one call per member by the rules of a backend.
std::vector<Fate> settle(const char* backend, std::vector<Op> calls,
                         std::vector<std::string>* failures = nullptr) {
  check::GroupMatcher matcher(static_cast<Rank>(calls.size()));
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    calls[rank].rank = static_cast<Rank>(rank);
    matcher.arrive(calls[rank]);
  }
  check::Slot& slot = *matcher.find(0);
  make_backend_rules(backend, old_torch)->settle(matcher, slot);
  if (failures != nullptr) {
    *failures = slot.failures;
  }
  return slot.fates;
}

const std::vector<Fate> all_hang{Fate::hangs, Fate::hangs};
const std::vector<Fate> all_complete{Fate::completes, Fate::completes};

}  // namespace

TEST_CASE("the table of admissions says what the rules say", "[backend_rules]") {
  for (const char* name : {"gloo", "nccl"}) {
    const auto rules = make_backend_rules(name);
    CHECK(rules->traits().name == name);
    const Admission admission(*rules);
    CHECK(admission.one_gpu_per_rank() == (rules->traits().device == DeviceType::cuda));
    Op op;
    for (const DeviceType type : {DeviceType::cpu, DeviceType::cuda, DeviceType::meta}) {
      for (std::size_t kind = 0; kind < op_kind_count; ++kind) {
        for (std::size_t dtype = 0; dtype < dtype_count; ++dtype) {
          for (std::size_t reduce = 0; reduce < reduce_op_count; ++reduce) {
            op.device.type = type;
            op.kind = static_cast<OpKind>(kind);
            op.dtype = static_cast<Dtype>(dtype);
            op.reduce = static_cast<ReduceOp>(reduce);
            REQUIRE(admission.admits(op) == !rules->refuses(op));
          }
        }
      }
    }
  }
}

TEST_CASE("NCCL takes CUDA tensors only, and barriers from anywhere", "[backend_rules]") {
  const auto nccl = make_backend_rules("nccl");
  CHECK(nccl->refuses(call(OpKind::all_reduce, Tensor::ones({1}))));
  CHECK_FALSE(
      nccl->refuses(call(OpKind::all_reduce, Tensor::ones({1}, Dtype::float32, {DeviceType::cuda, 0}))));
  CHECK_FALSE(nccl->refuses(Op{}));
  CHECK(std::string(nccl->refusal(Op{}, 2).what()) == "Tensors must be CUDA and dense");
}

TEST_CASE("Gloo refuses averages, meta tensors and dtypes it does not know", "[backend_rules]") {
  const auto gloo = make_backend_rules("gloo", old_torch);
  const auto text = [&gloo](const Op& op) { return std::string(gloo->refusal(op, 2).what()); };
  Op average = call(OpKind::all_reduce, Tensor::ones({1}));
  average.reduce = ReduceOp::avg;
  CHECK(gloo->refuses(average));
  CHECK(text(average) == "Cannot use ReduceOp.AVG with Gloo");
  Op bitwise = call(OpKind::reduce, Tensor::ones({1}));
  bitwise.reduce = ReduceOp::bxor;
  CHECK(text(bitwise) == "Cannot use ReduceOp.BXOR with non-integral dtype");
  CHECK(gloo->refuses(call(OpKind::broadcast, Tensor::meta({1}))));
  CHECK(std::string(gloo->refusal(call(OpKind::broadcast, Tensor::meta({1})), 2).type()) ==
        "NotImplementedError");
  for (const Dtype dtype : {Dtype::boolean, Dtype::int16, Dtype::bfloat16}) {
    CHECK(gloo->refuses(call(OpKind::all_reduce, Tensor::ones({1}, dtype))));
    CHECK(text(call(OpKind::broadcast, Tensor::ones({1}, dtype))) == "Invalid scalar type");
    CHECK_FALSE(gloo->refuses(call(OpKind::send, Tensor::ones({1}, dtype))));
  }
}

TEST_CASE("Gloo raises at once for what it lacks, and late for what its thread looks at", "[backend_rules]") {
  const auto gloo = make_backend_rules("gloo", old_torch);
  for (const OpKind kind : {OpKind::all_gather_into_tensor, OpKind::reduce_scatter,
                            OpKind::reduce_scatter_tensor, OpKind::all_to_all}) {
    CHECK(gloo->refuses(call(kind, Tensor::ones({2}))));
    CHECK_FALSE(gloo->raises_late(call(kind, Tensor::ones({2})), 2));
  }
  CHECK(gloo->raises_late(call(OpKind::all_gather, Tensor::ones({2}, Dtype::boolean)), 2));
  CHECK_FALSE(gloo->raises_late(call(OpKind::broadcast, Tensor::meta({1})), 2));
  CHECK_FALSE(gloo->raises_late(Op{}, 2));
}

TEST_CASE("a gloo rank whose call cannot be run fails, and the others wait for it", "[backend_rules]") {
  std::vector<std::string> failures;
  CHECK(settle("gloo",
               {call(OpKind::all_reduce, Tensor::ones({1})),
                call(OpKind::all_reduce, Tensor::ones({1}, Dtype::boolean))},
               &failures) == std::vector<Fate>{Fate::hangs, Fate::fails});
  CHECK(failures[1] == "Invalid scalar type");
}

TEST_CASE("different operations never exchange data", "[backend_rules]") {
  const Tensor tensor = Tensor::ones({4});
  for (const char* backend : {"gloo", "nccl"}) {
    CHECK(settle(backend, {call(OpKind::all_reduce, tensor), broadcast_from(0, tensor)}) == all_hang);
    CHECK(settle(backend, {broadcast_from(0, tensor), broadcast_from(1, tensor)}) == all_hang);
  }
}

TEST_CASE("a gloo broadcast to a smaller tensor aborts its rank", "[backend_rules]") {
  const Tensor four = Tensor::full({4}, 7);
  const Tensor one = Tensor::ones({1});
  std::vector<std::string> failures;
  CHECK(settle("gloo", {broadcast_from(0, four), broadcast_from(0, one)}, &failures) ==
        std::vector<Fate>{Fate::completes, Fate::crashes});
  CHECK_THAT(failures[1], EndsWith("16 vs 4"));
}

TEST_CASE("a gloo broadcast to a larger tensor leaves its tail", "[backend_rules]") {
  const Tensor one = Tensor::full({1}, 7);
  const Tensor four = Tensor::ones({4});
  CHECK(settle("gloo", {broadcast_from(0, one), broadcast_from(0, four)}) == all_complete);
  CHECK(four.to_vector() == std::vector<double>{7, 1, 1, 1});
}

TEST_CASE("in a gloo broadcast with two roots a child of one may be served", "[backend_rules]") {
  // desync_broadcast_root_w3: rank 1 receives from rank 0 and completes; ranks 0 and 2 wait for others.
  const Tensor tensors[] = {Tensor::full({1}, 1), Tensor::full({1}, 11), Tensor::full({1}, 21)};
  CHECK(settle("gloo", {broadcast_from(0, tensors[0]), broadcast_from(0, tensors[1]),
                        broadcast_from(1, tensors[2])}) ==
        std::vector<Fate>{Fate::hangs, Fate::completes, Fate::hangs});
  CHECK(tensors[1].item() == 1);
}

TEST_CASE("NCCL hangs on different byte counts", "[backend_rules]") {
  const Device gpu{DeviceType::cuda, 0};
  const Tensor four = Tensor::ones({4}, Dtype::float32, gpu);
  const Tensor five = Tensor::ones({5}, Dtype::float32, gpu);
  CHECK(settle("nccl", {call(OpKind::all_reduce, four), call(OpKind::all_reduce, five)}) == all_hang);
}

TEST_CASE("NCCL misreads equal byte counts of different dtypes silently", "[backend_rules]") {
  const Device gpu{DeviceType::cuda, 0};
  const Tensor ints = Tensor::full({2}, 1, Dtype::int32, gpu);
  const Tensor longs = Tensor::full({1}, 1, Dtype::int64, gpu);
  CHECK(settle("nccl", {call(OpKind::all_reduce, ints), call(OpKind::all_reduce, longs)}) == all_complete);
  CHECK(ints.to_vector() == std::vector<double>{2, 1});        // added as int32
  CHECK(longs.item_integer() == (std::int64_t{1} << 32) + 2);  // added as int64
}

TEST_CASE("different reductions complete, each rank reducing its own way", "[backend_rules]") {
  const Device gpu{DeviceType::cuda, 0};
  const Tensor a = Tensor::full({2}, 3, Dtype::float32, gpu);
  const Tensor b = Tensor::full({2}, 4, Dtype::float32, gpu);
  Op maximum = call(OpKind::all_reduce, b);
  maximum.reduce = ReduceOp::max;
  CHECK(settle("nccl", {call(OpKind::all_reduce, a), maximum}) == all_complete);
  CHECK(a.at(0) == 7);
  CHECK(b.at(1) == 4);
}

TEST_CASE("tensors without values get a fate and no bytes", "[backend_rules]") {
  const Tensor meta = Tensor::meta({4}, Dtype::float32, {DeviceType::cuda, 0});
  const Tensor other = Tensor::meta({4}, Dtype::int32, {DeviceType::cuda, 0});
  CHECK(settle("nccl", {call(OpKind::all_reduce, meta), call(OpKind::all_reduce, other)}) == all_hang);
}

TEST_CASE("a barrier on nccl is an all_reduce of one element: a byte, later a float", "[backend_rules]") {
  const auto fates_with = [](const Tensor& tensor, const TorchTraits& torch) {
    Op barrier;
    barrier.kind = OpKind::barrier;
    std::vector<Op> calls = {barrier, call(OpKind::all_reduce, tensor)};
    check::GroupMatcher matcher(2);
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      calls[rank].rank = static_cast<Rank>(rank);
      matcher.arrive(calls[rank]);
    }
    check::Slot& slot = *matcher.find(0);
    make_backend_rules("nccl", torch)->settle(matcher, slot);
    return slot.fates;
  };
  const TorchTraits& later = traits_of(TorchRelease::v2_6);
  const Tensor number = Tensor::full({1}, 3);
  CHECK(fates_with(number, later) == std::vector(2, Fate::completes));
  CHECK(number.at(0) == 3);  // the barrier adds a zero
  CHECK(fates_with(number, old_torch) == std::vector(2, Fate::hangs));
  CHECK(fates_with(Tensor::full({1}, 3, Dtype::int8), old_torch) == std::vector(2, Fate::completes));
  CHECK(fates_with(Tensor::full({2}, 3), later) == std::vector(2, Fate::hangs));
}

TEST_CASE("what nccl cannot do raises RuntimeError up to torch 2.0, and typed errors later",
          "[backend_rules]") {
  const Tensor numbers = Tensor::full({4}, 1, Dtype::int32, {DeviceType::cuda, 0});
  Op op = call(OpKind::all_reduce, numbers);
  op.reduce = ReduceOp::band;
  CHECK(make_backend_rules("nccl", old_torch)->refusal(op, 2).type() == std::string("RuntimeError"));
  for (const TorchRelease release : {TorchRelease::v2_6, TorchRelease::v2_14}) {
    CHECK(make_backend_rules("nccl", traits_of(release))->refusal(op, 2).type() == std::string("ValueError"));
  }
}

TEST_CASE("only gloo notices that a peer's process is gone", "[backend_rules]") {
  CHECK_FALSE(make_backend_rules("gloo")->lost_peer_text().empty());
  CHECK(make_backend_rules("nccl")->lost_peer_text().empty());
  CHECK_THAT(make_backend_rules("gloo")->timeout_text(2 * second, false), Contains("2000ms"));
  CHECK_THAT(make_backend_rules("nccl")->timeout_text(2 * second, false), Contains("2000 milli"));
}

}  // namespace rollcall::sim::backends_test
