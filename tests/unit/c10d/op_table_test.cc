#include "sim/c10d/op_table.h"

#include <map>
#include <string_view>

#include "sim/c10d/op.h"
#include "tests/catch.h"

namespace rollcall::op_table_test {

TEST_CASE(
    "Gloo has a function for a collective that some release has on it, and torch an error for the others") {
  for (const OpRow& row : op_rows) {
    INFO(row.name);
    if (row.family == Family::collective) {
      CHECK((row.gloo == GlooFunction::none) == (row.gloo_since == no_torch));
      CHECK((row.gloo_since == TorchRelease::v1_13) == row.gloo_refusal.empty());
    } else {
      CHECK(row.gloo == GlooFunction::none);
      CHECK(row.gloo_refusal.empty());
    }
  }
}

TEST_CASE("results of another size than what was given do not lie where it was") {
  for (const OpRow& row : op_rows) {
    INFO(row.name);
    CHECK((row.sizes == Sizes::equal) == works_in_place(row.kind));
  }
}

TEST_CASE("a root hands out lists as their source, and receives lists as their destination") {
  for (const OpRow& row : op_rows) {
    INFO(row.name);
    CHECK((row.given != Tensors::per_member_on_root || row.root == Root::source));
    CHECK((row.filled != Tensors::per_member_on_root || row.root == Root::destination));
  }
}

TEST_CASE("an alias in recordings stands for one operation") {
  std::map<std::string_view, int> uses;
  for (const OpRow& row : op_rows) {
    for (const std::string_view alias : row.aliases) {
      uses[alias] += alias.empty() ? 0 : 1;
    }
  }
  for (const auto& [alias, count] : uses) {
    INFO(alias);
    CHECK(count <= 1);
  }
}

namespace {

// Made by rank 1 of a group whose root is rank 0.
Op call_of(OpKind kind, const Tensor& tensor) {
  Op op;
  op.kind = kind;
  op.rank = 1;
  op.root = 0;
  (kind == OpKind::scatter ? op.tensors.output : op.tensors.input) = tensor.storage();
  return op;
}

}  // namespace

TEST_CASE("a call in place fills the tensors it was given, and hands over no others") {
  const Tensor tensor = Tensor::zeros({4});
  const Op op = call_of(OpKind::all_reduce, tensor);
  CHECK(given_tensors(op).empty());
  CHECK(filled_tensors(op).front().storage() == tensor.storage());

  const TensorList several{Tensor::zeros({1}), Tensor::zeros({2})};
  Op coalesced;
  coalesced.kind = OpKind::all_reduce_coalesced;
  coalesced.tensors.inputs = &several;
  CHECK(given_tensors(coalesced).empty());
  CHECK(filled_tensors(coalesced).size() == 2);
}

TEST_CASE("a send fills nothing, and a receive hands over nothing") {
  const Tensor tensor = Tensor::zeros({4});
  const Op send = call_of(OpKind::send, tensor);
  CHECK(given_tensors(send).front().storage() == tensor.storage());
  CHECK(filled_tensors(send).empty());

  const Op receive = call_of(OpKind::recv, tensor);
  CHECK(given_tensors(receive).empty());
  CHECK(filled_tensors(receive).front().storage() == tensor.storage());
}

TEST_CASE("off the root a scatter hands over nothing, and a gather fills nothing") {
  const Tensor tensor = Tensor::zeros({4});
  const Op scatter = call_of(OpKind::scatter, tensor);
  CHECK(given_tensors(scatter).empty());
  CHECK(filled_tensors(scatter).front().storage() == tensor.storage());

  const Op gather = call_of(OpKind::gather, tensor);
  CHECK(given_tensors(gather).front().storage() == tensor.storage());
  CHECK(filled_tensors(gather).empty());
}

TEST_CASE("an operation has one name per release, and is read by all of them") {
  CHECK(parse_op_kind("all_gather_single") == OpKind::all_gather_into_tensor);
  CHECK(parse_op_kind("reduce_scatter_single") == OpKind::reduce_scatter_tensor);
  CHECK(name_in(TorchRelease::v2_14, OpKind::all_gather_into_tensor) == "all_gather_single");
  CHECK(name_in(TorchRelease::v2_6, OpKind::all_gather_into_tensor) == "all_gather_into_tensor");
  CHECK(name_in(TorchRelease::v2_14, OpKind::all_reduce) == "all_reduce");
  CHECK_FALSE(has_function(TorchRelease::v2_6, "gather_single"));
  CHECK_FALSE(has_function(TorchRelease::v2_6, "all_gather_single"));
  CHECK(has_function(TorchRelease::v2_14, "all_gather_single"));
  CHECK(has_function(TorchRelease::v1_13, "all_gather_into_tensor"));
}

}  // namespace rollcall::op_table_test
