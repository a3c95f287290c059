#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/tensor/tensor.h"
#include "tests/catch.h"

namespace rollcall::tensor_test {

TEST_CASE("a shape counts its elements and prints as torch does") {
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{2, 3}.numel() == 6);
  CHECK(Shape{2, 0, 3}.numel() == 0);
  CHECK(to_string(Shape{2, 3}) == "[2, 3]");
  CHECK(to_string(Shape{}) == "[]");
  CHECK_FALSE(Shape{6} == Shape{2, 3});
}

TEST_CASE("an impossible shape is refused") {
  CHECK_THROWS_AS(Shape({-1}), RuntimeError);
  CHECK_THROWS_AS(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), RuntimeError);
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK_THROWS_AS(Shape({huge, huge}).numel(), RuntimeError);
}

TEST_CASE("copies of a tensor share their elements and clones do not") {
  Tensor original = Tensor::ones({3});
  Tensor copy = original;
  Tensor clone = original.clone();
  original.fill_(5);
  CHECK(copy.to_vector() == std::vector<double>{5, 5, 5});
  CHECK(clone.to_vector() == std::vector<double>{1, 1, 1});
}

TEST_CASE("a clone keeps shape, dtype and device") {
  Tensor original = Tensor::full({2, 2}, 7, Dtype::int64, {DeviceType::cuda, 1});
  Tensor clone = original.clone();
  CHECK(clone.shape() == original.shape());
  CHECK(clone.dtype() == Dtype::int64);
  CHECK(clone.device() == original.device());
  CHECK(clone.at(3) == 7);
}

TEST_CASE("storage lives as long as its last handle") {
  Tensor survivor;
  CHECK_FALSE(survivor);
  {
    Tensor original = Tensor::of({1, 2});
    survivor = original;
    Tensor moved = std::move(original);
    CHECK(moved.storage() == survivor.storage());
    CHECK(survivor.storage()->references.load() == 2);
  }
  CHECK(survivor.storage()->references.load() == 1);
  CHECK(survivor.to_vector() == std::vector<double>{1, 2});
  const Tensor& itself = survivor;
  survivor = itself;
  CHECK(survivor.at(1) == 2);
}

TEST_CASE("a uniform tensor of any size is one number") {
  Tensor large = Tensor::zeros({1'000'000'000'000});
  large.add_(Tensor::ones({1'000'000'000'000}));
  large.mul_(3);
  CHECK(large.storage()->form == Storage::Form::uniform);
  CHECK(large.storage()->elements.empty());
  CHECK(large.at(999'999'999'999) == 3);
}

TEST_CASE("the form of storage never changes a result") {
  Tensor dense = Tensor::of({1, 2, 3});
  CHECK(dense.storage()->form == Storage::Form::dense);
  dense.add_(Tensor::ones({3}));
  CHECK(dense.to_vector() == std::vector<double>{2, 3, 4});
  dense.add_(Tensor::of({2, 1, 0}));
  CHECK(dense.to_vector() == std::vector<double>{4, 4, 4});
  CHECK(dense.storage()->form == Storage::Form::uniform);  // and saves memory again

  Tensor uniform = Tensor::ones({3});
  uniform.add_(Tensor::of({0, 1, 2}));
  CHECK(uniform.to_vector() == std::vector<double>{1, 2, 3});
}

TEST_CASE("equal values given one by one are stored once") {
  CHECK(Tensor::of({2, 2, 2}).storage()->form == Storage::Form::uniform);
  CHECK(Tensor::of({2}).storage()->form == Storage::Form::uniform);
}

TEST_CASE("a one-element operand is broadcast") {
  Tensor tensor = Tensor::of({1, 2, 3});
  tensor.add_(Tensor::full({1}, 10));
  CHECK(tensor.to_vector() == std::vector<double>{11, 12, 13});
  tensor.copy_(Tensor::full({1}, 4));
  CHECK(tensor.to_vector() == std::vector<double>{4, 4, 4});
}

TEST_CASE("operands of other sizes or dtypes are refused") {
  CHECK_THROWS_AS(Tensor::ones({3}).add_(Tensor::ones({2})), RuntimeError);
  CHECK_THROWS_AS(Tensor::ones({3}).add_(Tensor::ones({3}, Dtype::int32)), RuntimeError);
}

TEST_CASE("item is for tensors of one element") {
  CHECK(Tensor::full({1}, 2.5).item() == 2.5);
  CHECK(Tensor::full({}, 2.5).item() == 2.5);
  CHECK_THROWS_AS(Tensor::ones({2}).item(), Error);
  CHECK_THROWS_AS(Tensor::zeros({0}).item(), Error);
  CHECK_THROWS_AS(Tensor::meta({1}).item(), Error);
}

TEST_CASE("an int64 tensor is exact beyond what a double holds") {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  Tensor tensor = Tensor::integer(odd);
  tensor.add_(Tensor::integer(2));
  CHECK(tensor.item_integer() == odd + 2);
}

TEST_CASE("values are rounded to the dtype when a tensor is made") {
  CHECK(Tensor::full({2}, 0.1, Dtype::float16).at(1) == 0.0999755859375);
  CHECK(Tensor::of({2.9, -2.9}, Dtype::int32).to_vector() == std::vector<double>{2, -2});
}

TEST_CASE("a tensor without elements can be used") {
  Tensor empty = Tensor::zeros({0});
  CHECK(empty.numel() == 0);
  CHECK(empty.to_vector().empty());
  empty.add_(Tensor::zeros({0}));
  CHECK(to_string(empty) == "tensor([])");
}

TEST_CASE("an index outside a tensor is an error of the program") {
  CHECK_THROWS_AS(Tensor::ones({2}).at(2), RuntimeError);
  CHECK_THROWS_AS(Tensor::ones({2}).at(-1), RuntimeError);
}

TEST_CASE("a meta tensor has a shape and no values") {
  Tensor meta = Tensor::meta({2, 3}, Dtype::float16);
  CHECK(meta.is_meta());
  CHECK(meta.numel() == 6);
  CHECK(meta.device() == Device{DeviceType::meta, 0});
  CHECK_THROWS_AS(meta.at(0), NotImplementedError);
  CHECK_THROWS_AS(meta.fill_(1), NotImplementedError);
  CHECK_THROWS_AS(Tensor::ones({2, 3}, Dtype::float16).add_(meta), NotImplementedError);
  CHECK(Tensor::full({1}, 1, Dtype::float32, {DeviceType::meta, 0}).is_meta());
  CHECK(Tensor::of({1, 2}, Dtype::float32, {DeviceType::meta, 0}).is_meta());
}

TEST_CASE("tensors print as in torch") {
  CHECK(to_string(Tensor::of({1, 2})) == "tensor([1., 2.])");
  CHECK(to_string(Tensor::of({0.5, 2})) == "tensor([0.5000, 2.0000])");
  CHECK(to_string(Tensor::of({1, 2}, Dtype::int64)) == "tensor([1, 2])");
  CHECK(to_string(Tensor::of({1, 0}, Dtype::boolean)) == "tensor([True, False])");
}

}  // namespace rollcall::tensor_test
