#include <vector>

#include <catch2/catch.hpp>

#include "sim/dist.h"
#include "tests/conformance/recorder.h"
#include "tests/unit/dist/fake_rank.h"

namespace rollcall::golden {

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
class Refusing final : public Backend {
 public:
  std::string_view name() const override { return "gloo"; }
  Work issue(const Op&) override { throw RuntimeError("refused"); }
  void wait(const Work&) override {}
  bool is_completed(const Work&) override { return true; }
  void compute(Duration) override {}
  ProcessGroup find_group(std::string_view) override { return {}; }
  void print(std::string_view) override {}
  void warn(std::string_view) override {}
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

TEST_CASE("waiting goes through the recorder to the backend inside", "[conformance]") {
  RecordedRank rank(0, 2);
  barrier();
  CHECK(rank.fake.waited == std::vector<std::int64_t>{0});
}

}  // namespace rollcall::golden
