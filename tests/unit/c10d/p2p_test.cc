// What torch's sends and receives do with their arguments, from one rank's side.

#include "sim/c10d/p2p.h"
#include "sim/c10d/scope.h"

#include <array>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/c10d/fake_rank.h"

namespace rollcall::p2p_test {

using test::FakeRank;

namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(error.type()) + ": " + error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a message names its peer inside the group, and its tag", "[p2p]") {
  FakeRank rank(5, 8);
  rank.add_group("odd", {1, 3, 5, 7});
  const Tensor tensor = Tensor::full({3}, 4, Dtype::int32);
  send(tensor, 7, {.group = rank.find_group("odd"), .tag = 9});
  recv(tensor, 2);
  REQUIRE(rank.issued.size() == 2);
  CHECK(rank.issued[0].kind == OpKind::send);
  CHECK(rank.issued[0].rank == 2);
  CHECK(rank.issued[0].root == 3);
  CHECK(rank.issued[0].tag == 9);
  CHECK(rank.issued[0].numel == 3);
  CHECK(rank.issued[0].dtype == Dtype::int32);
  CHECK(rank.sent[0] == 4);
  CHECK(rank.issued[1].kind == OpKind::recv);
  CHECK(rank.issued[1].group == world_group);
  CHECK(rank.issued[1].root == 2);
  CHECK(rank.issued[1].tag == 0);
}

TEST_CASE("send and recv wait, isend and irecv do not", "[p2p]") {
  FakeRank rank;
  const Tensor tensor = Tensor::ones({1});
  send(tensor, 1);
  CHECK(recv(tensor, 1) == 1);
  CHECK(rank.waited == std::vector<std::int64_t>{0, 1});
  isend(tensor, 1);
  const Work receiving = irecv(tensor, 1);
  CHECK(rank.waited.size() == 2);
  CHECK_FALSE(rank.issued[1].async_op);
  CHECK(rank.issued[2].async_op);
  CHECK(rank.issued[3].async_op);
  receiving.wait();
  CHECK(rank.waited.back() == 3);
}

TEST_CASE("a receive without a source asks the backend who sent, and answers with a global rank", "[p2p]") {
  FakeRank rank(1, 8);
  rank.add_group("odd", {1, 3, 5, 7});
  rank.source = 2;
  CHECK(recv(Tensor::ones({1}), std::nullopt, {.group = rank.find_group("odd")}) == 5);
  CHECK(rank.issued.back().root == -1);
}

TEST_CASE("nobody sends to himself or receives from himself", "[p2p]") {
  FakeRank rank(1, 2);
  const Tensor tensor = Tensor::ones({1});
  const std::string text = " rank should not be the same as the rank of the current process.";
  for (const auto& call : {std::function<void()>([&] { send(tensor, 1); }), {[&] { isend(tensor, 1); }}}) {
    CHECK(refusal(call) == "ValueError: Invalid destination rank: destination" + text);
  }
  for (const auto& call : {std::function<void()>([&] { recv(tensor, 1); }), {[&] { irecv(tensor, 1); }}}) {
    CHECK(refusal(call) == "ValueError: Invalid source rank: source" + text);
  }
  CHECK(rank.issued.empty());
}

TEST_CASE("a peer that is no rank of the group is refused", "[p2p]") {
  FakeRank rank(3, 4);
  rank.add_group("odd", {1, 3});
  const Tensor tensor = Tensor::ones({1});
  CHECK(refusal([&] { send(tensor, 2, {.group = rank.find_group("odd")}); }) ==
        "RuntimeError: Global rank 2 is not part of group odd");
  CHECK(
      refusal([&] { recv(tensor, -1); }) ==
      "IndexError: vector::_M_range_check: __n (which is 18446744073709551615) >= this->size() (which is 4)");
  CHECK(rank.issued.empty());
}

TEST_CASE("a message is a tensor", "[p2p]") {
  FakeRank rank;
  CHECK(refusal([] { send({}, 1); }).find("Expected parameter `tensor`") != std::string::npos);
  CHECK(refusal([] { irecv({}); }).find("Expected parameter `tensor`") != std::string::npos);
}

TEST_CASE("messages on a group one does not belong to warn and are not sent", "[p2p]") {
  FakeRank rank(0, 4);
  rank.add_group("odd", {1, 3});
  const ProcessGroup odd = rank.find_group("odd");
  const Tensor tensor = Tensor::ones({1});
  send(tensor, 3, {.group = odd});
  CHECK(recv(tensor, 3, {.group = odd}) == -1);
  CHECK(isend(tensor, 3, {.group = odd}).is_completed());
  CHECK(irecv(tensor, 3, {.group = odd}).is_completed());
  CHECK(rank.issued.empty());
  std::vector<std::string> functions;
  for (const std::string& warning : rank.warnings) {
    const std::size_t begin = warning.find("Running ") + 8;
    functions.push_back(warning.substr(begin, warning.find(" on global rank 0") - begin));
  }
  CHECK(functions == std::vector<std::string>{"send", "recv", "isend", "irecv"});
}

TEST_CASE("of a batch, only messages on groups one belongs to are issued", "[p2p]") {
  FakeRank rank(0, 4);
  rank.add_group("odd", {1, 3});
  const Tensor tensor = Tensor::ones({1});
  const std::array batch{PointToPoint{OpKind::recv, tensor, 3, {.group = rank.find_group("odd")}},
                         PointToPoint{OpKind::send, tensor, 3}};
  CHECK(batch_isend_irecv(batch).size() == 1);
  CHECK(rank.issued.size() == 1);
  REQUIRE(rank.warnings.size() == 1);
  CHECK(rank.warnings[0].find("Running irecv on global rank 0") != std::string::npos);
}

TEST_CASE("a batch is issued as a whole, in order, and not waited for", "[p2p]") {
  FakeRank rank(0, 3);
  const Tensor tensor = Tensor::ones({1});
  const std::array batch{PointToPoint{OpKind::send, tensor, 1, {.tag = 4}},
                         PointToPoint{OpKind::recv, tensor, 2}};
  const std::vector<Work> works = batch_isend_irecv(batch);
  CHECK(works.size() == 2);
  CHECK(rank.batches == std::vector<std::size_t>{2});
  REQUIRE(rank.issued.size() == 2);
  CHECK(rank.issued[0].kind == OpKind::send);
  CHECK(rank.issued[0].tag == 4);
  CHECK(rank.issued[1].root == 2);
  CHECK(rank.issued[1].async_op);
  CHECK(rank.waited.empty());
}

TEST_CASE("a batch of anything but sends and receives is refused before anything is issued", "[p2p]") {
  FakeRank rank(0, 3);
  const Tensor tensor = Tensor::ones({1});
  const std::array batch{PointToPoint{OpKind::send, tensor, 1}, PointToPoint{OpKind::all_reduce, tensor, 2}};
  CHECK(refusal([&] { batch_isend_irecv(batch); }).starts_with("RuntimeError: Invalid ``op``."));
  CHECK(rank.issued.empty());
}

TEST_CASE("messages carry the scope they were issued in", "[p2p]") {
  FakeRank rank;
  const Tensor tensor = Tensor::ones({1});
  {
    Scope scope("pipeline.forward");
    send(tensor, 1);
  }
  irecv(tensor, 1);
  CHECK(rank.scopes() == std::vector<std::string>{"pipeline.forward", ""});
}

}  // namespace rollcall::p2p_test
