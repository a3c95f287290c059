
#include "scenarios/run/tensor_text.h"
#include "tests/catch.h"

namespace rollcall::scenario::tensor_text_test {

TEST_CASE("one element prints as a number", "[scenarios]") {
  CHECK(tensor_text(Tensor::full({1}, 11)) == "11");
  CHECK(tensor_text(Tensor::full({1}, 0.5)) == "0.5");
  CHECK(tensor_text(Tensor::full({1}, 0.1)) == "0.10000000149011612");  // the output of float32's item()
  CHECK(tensor_text(Tensor::full({1}, 0.1, Dtype::float64)) == "0.1");
  CHECK(tensor_text(Tensor::full({1}, 1e20, Dtype::float64)) == "1e+20");
  CHECK(tensor_text(Tensor::full({1}, 1e-5, Dtype::float64)) == "1e-05");
  CHECK(tensor_text(Tensor::integer(-3)) == "-3");
  CHECK(tensor_text(Tensor::integer(9007199254740993)) == "9007199254740993");
  CHECK(tensor_text(Tensor::full({1}, 1, Dtype::boolean)) == "True");
}

TEST_CASE("more elements print in brackets", "[scenarios]") {
  CHECK(tensor_text(Tensor::of({1, 2.5, -3})) == "[1, 2.5, -3]");
  CHECK(tensor_text(Tensor::zeros({0})) == "[]");
  CHECK(tensor_text(TensorList{Tensor::ones({1}), Tensor::zeros({2})}) == "[1, [0, 0]]");
}

TEST_CASE("large tensors show their ends", "[scenarios]") {
  CHECK(tensor_text(Tensor::ones({1001})) == "[1, 1, 1, ..., 1, 1, 1]");
  CHECK(tensor_text(Tensor::ones({100'000'000'000})) == "[1, 1, 1, ..., 1, 1, 1]");
  CHECK(tensor_text(TensorList(1000, Tensor::ones({1}))).size() == 3000);
  CHECK(tensor_text(TensorList(1001, Tensor::ones({1}))) == "[1, 1, 1, ..., 1, 1, 1]");
}

}  // namespace rollcall::scenario::tensor_text_test
