#include "sim/nccl/launch_table.h"
#include "tests/catch.h"

namespace rollcall::sim::launch_table_test {
namespace {

Op call(Rank rank, const Tensor& tensor) {
  Op op;
  op.kind = OpKind::all_reduce;
  op.group = 3;
  op.rank = rank;
  op.numel = tensor.numel();
  op.tensors.input = tensor.storage();
  return op;
}

void finish_front(LaunchTable& table, Rank member) {
  table.lane(member).running = true;
  table.finish(member);
}

}  // namespace

TEST_CASE("members that say the same share a row, each with its own tensor and stream", "[launch_table]") {
  LaunchTable table(3, 2);
  const Tensor a = Tensor::zeros({4});
  const Tensor b = Tensor::zeros({4});
  Op second = call(1, b);
  second.stream = {7};
  CHECK(table.launch(call(0, a), 0) == 0);
  CHECK(table.launch(second, 5) == 0);
  CHECK_FALSE(table.place(1, 0).is_own);
  CHECK(table.op_of(0, 0).tensors.input == a.storage());
  CHECK(table.op_of(1, 0).tensors.input == b.storage());
  CHECK(table.op_of(1, 0).rank == 1);
  CHECK(table.op_of(1, 0).stream == Stream{7});
}

TEST_CASE("a member that says something else keeps what it says", "[launch_table]") {
  LaunchTable table(3, 2);
  table.launch(call(0, Tensor::zeros({4})), 0);
  table.launch(call(1, Tensor::zeros({5})), 0);
  CHECK(table.place(1, 0).is_own);
  CHECK(table.op_of(0, 0).numel == 4);
  CHECK(table.op_of(1, 0).numel == 5);
}

TEST_CASE("what is launched stays alive until it is over", "[launch_table]") {
  const Tensor watched = Tensor::zeros({4});
  {
    LaunchTable table(3, 1);
    table.launch(call(0, watched), 0);
    table.launch(call(0, watched), 1);
    CHECK(watched.storage()->pending == 2);
    CHECK(watched.storage()->references == 2);
    finish_front(table, 0);
    CHECK(watched.storage()->pending == 1);
    SECTION("by finishing") { finish_front(table, 0); }
    SECTION("or with the run") {}
  }
  CHECK(watched.storage()->pending == 0);
  CHECK(watched.storage()->references == 1);
}

TEST_CASE("lists are copied: the caller's may go", "[launch_table]") {
  LaunchTable table(3, 1);
  const Tensor input = Tensor::zeros({1});
  const Tensor output = Tensor::zeros({1});
  {
    const TensorList outputs{output};
    Op op = call(0, input);
    op.kind = OpKind::all_gather;
    op.tensors.outputs = &outputs;
    table.launch(op, 0);
  }
  CHECK(table.op_of(0, 0).tensors.outputs->front().storage() == output.storage());
  CHECK(output.storage()->pending == 1);
  finish_front(table, 0);
  CHECK(output.storage()->pending == 0);
}

TEST_CASE("one member may be far ahead of another", "[launch_table]") {
  LaunchTable table(3, 2);
  const Tensor tensor = Tensor::zeros({1});
  for (std::uint32_t i = 0; i < 100; ++i) {
    CHECK(table.launch(call(0, tensor), i) == i);
  }
  CHECK(table.launch(call(1, tensor), 0) == 0);
  CHECK(table.place(0, 99).launched == 99);
  for (int i = 0; i < 100; ++i) {
    finish_front(table, 0);
  }
  CHECK(table.has_finished(0, 99));
  CHECK_FALSE(table.has_finished(1, 0));
}

}  // namespace rollcall::sim::launch_table_test
