#include "real/rank/record.h"
#include "tests/catch.h"

namespace rollcall::real::record_test {
namespace {

Record issue_record() {
  Record record;
  record.kind = Record::Kind::issue;
  record.at = 12;
  record.call = 3;
  record.op.op.kind = OpKind::all_to_all_single;
  record.op.op.numel = 6;
  record.op.op.group = 2;
  record.op.names = {"epoch", "join.count"};
  record.op.pairings = {"", "join.presence"};
  record.op.file = "train.json";
  record.op.input = Shape{2, 3};
  record.op.outputs = std::vector<Shape>{Shape{3}, Shape{}};
  record.op.splits = SplitSizes{{1, 1}, {2, 0}};
  return record;
}

Record print_record(const std::string& text) {
  Record record;
  record.kind = Record::Kind::print;
  record.text = text;
  return record;
}

}  // namespace

TEST_CASE("a record survives the way through a pipe, byte by byte", "[real]") {
  const std::string bytes = encode(issue_record()) + encode(print_record("hello"));
  Decoder decoder;
  std::vector<Record> records;
  for (const char byte : bytes) {
    decoder.feed(&byte, 1);
    while (const std::optional<Record> record = decoder.next()) {
      records.push_back(*record);
    }
  }
  REQUIRE(records.size() == 2);
  const Record& issue = records.front();
  CHECK(issue.at == 12);
  CHECK(issue.call == 3);
  CHECK(issue.op.op.kind == OpKind::all_to_all_single);
  CHECK(issue.op.op.numel == 6);
  CHECK(issue.op.op.group == 2);
  CHECK(issue.op.names == std::vector<std::string>{"epoch", "join.count"});
  CHECK(issue.op.pairings == std::vector<std::string>{"", "join.presence"});
  CHECK(issue.op.file == "train.json");
  CHECK(issue.op.input == Shape{2, 3});
  CHECK_FALSE(issue.op.output.has_value());
  CHECK(issue.op.outputs == std::vector<Shape>{Shape{3}, Shape{}});
  CHECK(issue.op.splits->output == std::vector<std::int64_t>{1, 1});
  CHECK(issue.op.splits->input == std::vector<std::int64_t>{2, 0});
  CHECK(records.back().text == "hello");
}

TEST_CASE("the record a rank died in is not read", "[real]") {
  const std::string bytes = encode(print_record("whole")) + encode(print_record("half"));
  Decoder decoder;
  decoder.feed(bytes.data(), bytes.size() - 3);
  CHECK(decoder.next()->text == "whole");
  CHECK_FALSE(decoder.next().has_value());
}

TEST_CASE("equal results have equal digests, in whatever form they are kept", "[real]") {
  const Tensor uniform = Tensor::full({4}, 2.5);
  const Tensor dense = uniform.clone();
  dense.storage()->make_dense();
  CHECK(digest_of({uniform}) == digest_of({dense}));
  CHECK(digest_of({uniform}) != digest_of({Tensor::full({4}, 2.25)}));
  CHECK(digest_of({Tensor::full({1}, 0.0)}) != digest_of({Tensor::full({1}, -0.0)}));
  CHECK(digest_of({}) == 0);
}

TEST_CASE("the digest of many equal values is that of the same values one by one", "[real]") {
  for (const Dtype dtype : {Dtype::uint8, Dtype::bfloat16, Dtype::float32, Dtype::int64}) {
    for (const std::int64_t count : {9'999, 10'001, 65'536, 100'003}) {
      for (const double value : {0.0, 1.0, 77.5}) {
        CAPTURE(dtype, count, value);
        const Tensor uniform = Tensor::full({count}, value, dtype);
        const Tensor dense = uniform.clone();
        dense.storage()->make_dense();
        const Tensor before = Tensor::full({3}, 2.0, dtype);
        CHECK(digest_of({before, uniform, before}) == digest_of({before, dense, before}));
      }
    }
  }
}

TEST_CASE("a reduce has its result on the root only", "[real]") {
  const Tensor tensor = Tensor::ones({2});
  Op op;
  op.kind = OpKind::reduce;
  op.root = 1;
  op.tensors.input = tensor.storage();
  CHECK(results_of(op).empty());
  op.rank = 1;
  CHECK(results_of(op).size() == 1);
}

}  // namespace rollcall::real::record_test
