
#include "sim/c10d/rank_context.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "tests/catch.h"

namespace rollcall::complex_test {
namespace {

using Numbers = std::vector<double>;

void on_gloo(Rank ranks, const sim::Program& program) {
  const Report report = sim::run({.world_size = ranks, .backend = "gloo"}, program);
  CHECK(std::holds_alternative<Completed>(report.verdict));
}

}  // namespace

TEST_CASE("a complex tensor has half as many elements as numbers", "[complex]") {
  const Tensor tensor = Tensor::of({1, 2}, Dtype::complex64);
  CHECK(tensor.dtype() == Dtype::complex64);
  CHECK(tensor.numel() == 2);
  CHECK(tensor.to_vector() == Numbers{1, 0, 2, 0});
  CHECK(to_string(tensor) == "tensor([1.+0.j, 2.+0.j])");
  CHECK(Tensor::full({2}, 3, Dtype::complex128).to_vector() == Numbers{3, 0, 3, 0});
  CHECK_THROWS_AS(Tensor::full({1}, 3, Dtype::complex64).item(), RuntimeError);
}

TEST_CASE("real parts survive a cast from and to complex", "[complex]") {
  const Tensor real = Tensor::of({1, 2});
  const Tensor complex = real.to(Dtype::complex128);
  CHECK(complex.dtype() == Dtype::complex128);
  CHECK(complex.to_vector() == Numbers{1, 0, 2, 0});
  CHECK(complex.to(Dtype::complex64).dtype() == Dtype::complex64);
  CHECK(complex.to(Dtype::float32).to_vector() == real.to_vector());
}

TEST_CASE("complex tensors are added as pairs of real numbers", "[fiber][complex]") {
  on_gloo(3, [](Rank rank) {
    const Tensor tensor = Tensor::of({1.0 + rank, 2}, Dtype::complex64);
    all_reduce(tensor);
    CHECK(tensor.to_vector() == Numbers{6, 0, 6, 0});
  });
}

TEST_CASE("reductions that would mix real and imaginary parts are refused", "[fiber][complex]") {
  on_gloo(2, [](Rank) {
    CHECK_THROWS_WITH(all_reduce(Tensor::zeros({1}, Dtype::complex64), {.op = ReduceOp::max}),
                      "all_reduce does not support RedOpType.MAX on complex tensors");
  });
}

TEST_CASE("complex tensors are broadcast by no backend", "[fiber][complex]") {
  on_gloo(2, [](Rank) {
    CHECK_THROWS_WITH(broadcast(Tensor::zeros({1}, Dtype::complex64), 0), "Invalid scalar type");
  });
  sim::run({.world_size = 2, .backend = "nccl"}, [](Rank) {
    CHECK_THROWS_WITH(broadcast(Tensor::zeros({1}, Dtype::complex64, this_rank().device), 0),
                      "Input tensor data type is not supported for NCCL process group: ComplexFloat");
  });
}

TEST_CASE("a complex message is as long as its numbers", "[fiber][complex]") {
  on_gloo(2, [](Rank rank) {
    const Tensor tensor = Tensor::of({1.0 + rank, 2}, Dtype::complex64);
    if (rank == 0) {
      send(tensor, 1);
    } else {
      recv(tensor, 0);
      CHECK(tensor.to_vector() == Numbers{1, 0, 2, 0});
    }
  });
}

TEST_CASE("PREMUL_SUM adds what each rank has multiplied with its own factor", "[fiber][premul]") {
  const Report report = sim::run({.world_size = 3, .backend = "nccl"}, [](Rank rank) {
    const Tensor tensor = Tensor::full({4}, 8, Dtype::float32, this_rank().device);
    const double factor = rank == 0 ? 0.5 : 2;
    all_reduce(tensor, {.op = ReduceOp::premul_sum, .factor = factor});
    CHECK(tensor.at(3) == 36);
    const Tensor part = Tensor::zeros({1}, Dtype::float32, this_rank().device);
    const Tensor whole = Tensor::of({1, 2, 3}, Dtype::float32, this_rank().device);
    reduce_scatter_tensor(part, whole, {.op = ReduceOp::premul_sum, .factor = factor});
    CHECK(part.item() == 4.5 * (rank + 1));
    CHECK(whole.to_vector() == Numbers{1, 2, 3});  // the input is not scaled
  });
  CHECK(std::holds_alternative<Completed>(report.verdict));
}

TEST_CASE("PREMUL_SUM is NCCL's, and for floating types", "[fiber][premul]") {
  sim::run({.world_size = 2, .backend = "nccl"}, [](Rank) {
    const Tensor tensor = Tensor::ones({1}, Dtype::int32, this_rank().device);
    CHECK_THROWS_WITH(all_reduce(tensor, {.op = ReduceOp::premul_sum}),
                      "PreMulSum Data type must be half, float, bfloat16 or double");
  });
  on_gloo(2, [](Rank) {
    CHECK_THROWS_WITH(all_reduce(Tensor::ones({1}), {.op = ReduceOp::premul_sum}),
                      "Cannot use ReduceOp.PREMUL_SUM with Gloo");
  });
}

}  // namespace rollcall::complex_test
