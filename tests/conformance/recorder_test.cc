#include <vector>

#include "sim/dist.h"
#include "tests/catch.h"
#include "tests/conformance/recorder.h"
#include "tests/unit/c10d/fake_rank.h"
#include "tests/unit/c10d/lone_backend.h"

namespace rollcall::golden::recorder_test {

namespace {

// A rank whose backend is recorded.
struct RecordedRank {
  RecordedRank(Rank rank, Rank world_size)
      : fake(rank, world_size), log(static_cast<std::size_t>(world_size)) {
    this_rank().backend = &recorder;
  }
  const std::vector<OpRecord>& ops() const { return log.at(static_cast<std::size_t>(get_rank())).ops; }

  test::FakeRank fake;
  RunLog log;
  Recorder recorder{fake, log};
};

// A backend that refuses every call.
class Refusing final : public test::LoneBackend {
 public:
  Work issue(const Op&) override { throw RuntimeError("refused"); }
};

// A backend whose first collective and first message fail. They have the number 0, as everywhere.
class Failing final : public test::LoneBackend {
 public:
  Work issue(const Op& op) override {
    return is_point_to_point(op.kind) ? Work(op.group, op.rank, 0, 0) : Work(op.group, op.rank, 0);
  }
  void wait(const Work&) override { throw RuntimeError("failed"); }
  bool is_completed(const Work&) override { return false; }
};

}  // namespace

TEST_CASE("an operation is recorded as it was issued, before it changes its tensor", "[conformance]") {
  RecordedRank rank(1, 2);
  rank.fake.answers = {9};
  Tensor tensor = Tensor::of({1, 2}, Dtype::int32);
  {
    Scope outer("user.run");
    Scope inner("user.step");
    all_reduce(tensor, {.op = ReduceOp::max, .async_op = true});
  }
  REQUIRE(rank.ops().size() == 1);
  const OpRecord& record = rank.ops().front();
  CHECK(recorded_name(record.kind) == "all_reduce");
  CHECK(record.group == "world");
  CHECK(record.numel == std::vector<std::int64_t>{2});
  CHECK(record.dtype == Dtype::int32);
  CHECK(record.reduce == ReduceOp::max);
  CHECK_FALSE(record.root);
  CHECK(record.async_op);
  CHECK(record.site == "user.step");
  CHECK(record.input == std::vector<Bits>{1, 2});
  CHECK(tensor.at(0) == 9);
}

TEST_CASE("operations are counted per rank and collectives per group", "[conformance]") {
  RecordedRank rank(2, 4);
  rank.fake.add_group("g1", {0, 2});
  ProcessGroup group = find_group("g1");
  barrier();
  barrier({.group = group});
  barrier();
  REQUIRE(rank.ops().size() == 3);
  CHECK(rank.ops()[1].group == "g1[0,2]");
  CHECK(rank.ops()[1].index == 1);
  CHECK(rank.ops()[1].collective_index == 0);
  CHECK(rank.ops()[2].index == 2);
  CHECK(rank.ops()[2].collective_index == 1);
}

TEST_CASE("values are recorded where they are sent and few", "[conformance]") {
  RecordedRank rank(0, 2);
  Tensor tensor = Tensor::ones({1});
  broadcast(tensor, 0);
  broadcast(tensor, 1);            // receives
  all_reduce(Tensor::ones({13}));  // too many
  all_reduce(Tensor::ones({12}));
  all_reduce(Tensor::ones({1}, Dtype::float32, {DeviceType::cuda, 0}));  // out of reach
  barrier();
  std::vector<bool> shown;
  for (const OpRecord& record : rank.ops()) {
    shown.push_back(record.input.has_value());
  }
  CHECK(shown == std::vector<bool>{true, false, false, true, false, false});
}

TEST_CASE("a list is recorded tensor by tensor, with its outputs", "[conformance]") {
  RecordedRank rank(0, 2);
  Tensor tensor = Tensor::ones({3});
  all_gather({tensor.clone(), tensor.clone()}, tensor);
  scatter(tensor, {tensor.clone(), tensor.clone()}, 0);
  scatter(tensor, {}, 1);
  REQUIRE(rank.ops().size() == 3);
  CHECK(rank.ops()[0].numel == std::vector<std::int64_t>{3});
  CHECK(rank.ops()[0].out_numel == std::vector<std::int64_t>{3, 3});
  CHECK(rank.ops()[1].numel == std::vector<std::int64_t>{3, 3});
  CHECK(rank.ops()[1].out_numel == std::vector<std::int64_t>{3});
  CHECK(rank.ops()[1].root == 0);
  CHECK(rank.ops()[2].numel.empty());
}

TEST_CASE("a refused operation is recorded with its error", "[conformance]") {
  test::FakeRank fake;
  Refusing refusing;
  RunLog log(2);
  Recorder recorder(refusing, log);
  this_rank().backend = &recorder;
  CHECK_THROWS_AS(barrier(), RuntimeError);
  REQUIRE(log[0].ops.size() == 1);
  CHECK(log[0].ops[0].raised == "refused");
}

TEST_CASE("messages have a peer and a tag, and are not counted among the collectives", "[conformance]") {
  RecordedRank rank(2, 4);
  rank.fake.add_group("g1", {0, 2, 3});
  const Tensor tensor = Tensor::of({5, 6});
  send(tensor, 3, {.group = find_group("g1"), .tag = 8});
  irecv(tensor, 1);
  barrier();
  REQUIRE(rank.ops().size() == 3);
  CHECK(rank.ops()[0].peer == 2);  // inside the group
  CHECK(rank.ops()[0].tag == 8);
  CHECK_FALSE(rank.ops()[0].root);
  CHECK(rank.ops()[0].input.has_value());
  CHECK(rank.ops()[1].async_op);
  CHECK_FALSE(rank.ops()[1].input.has_value());
  CHECK(rank.ops()[2].collective_index == 0);
}

TEST_CASE("a receive from anyone is called otherwise", "[conformance]") {
  RecordedRank rank(0, 2);
  const Tensor tensor = Tensor::ones({1});
  irecv(tensor, 1);
  irecv(tensor);
  CHECK(recorded_name(rank.ops()[0]) == "recv");
  CHECK(recorded_name(rank.ops()[1]) == "recv_any");
  CHECK_FALSE(rank.ops()[1].peer);
}

TEST_CASE("a batch is recorded operation by operation and passed on as one", "[conformance]") {
  RecordedRank rank(0, 3);
  const Tensor tensor = Tensor::ones({1});
  const PointToPoint batch[] = {{OpKind::send, tensor, 1}, {OpKind::recv, tensor, 2}};
  const std::vector<Work> works = batch_isend_irecv(batch);
  CHECK(rank.fake.batches == std::vector<std::size_t>{2});
  REQUIRE(rank.ops().size() == 2);
  CHECK(rank.ops()[0].peer == 1);
  CHECK(rank.ops()[1].kind == OpKind::recv);
  CHECK(rank.ops()[1].seq == works[1].seq());
}

TEST_CASE("the error of waiting for a message is not noted at the collective of that number",
          "[conformance]") {
  test::FakeRank fake;
  Failing failing;
  RunLog log(2);
  Recorder recorder(failing, log);
  this_rank().backend = &recorder;
  barrier({.async_op = true});
  CHECK_THROWS_AS(send(Tensor::ones({1}), 1), RuntimeError);
  REQUIRE(log[0].ops.size() == 2);
  CHECK(log[0].ops[0].failed.empty());
  CHECK(log[0].ops[1].failed == "failed");
}

TEST_CASE("waiting goes through the recorder to the backend inside", "[conformance]") {
  RecordedRank rank(0, 2);
  barrier();
  CHECK(rank.fake.waited == std::vector<std::int64_t>{0});
}

}  // namespace rollcall::golden::recorder_test
