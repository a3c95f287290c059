#include "viz/rows/call_sequences.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/unit/viz/recorded_calls.h"
#include "tests/unit/viz/sample_reports.h"

namespace rollcall::viz {

namespace {

using samples::record;
using samples::record_common;

// Rank 0 finished after `common` calls, the others are stuck in the next.
Report hang(Rank world_size, std::int64_t common) {
  Report report = samples::missing_rank(world_size);
  std::get<Deadlock>(report.verdict).finding.at->call.seq = common;
  record_common(report, common);
  for (Rank rank = 1; rank < world_size; ++rank) {
    record(report, {.rank = rank, .seq = common, .start = 10 * common});
  }
  return report;
}

// Culprits have columns of their own; here nobody is one.
Report blameless(Rank world_size) {
  Report report = samples::missing_rank(world_size);
  std::get<Deadlock>(report.verdict).finding.culprits = {};
  return report;
}

std::vector<std::string> calls_of(const CallSequences::Column& column) {
  std::vector<std::string> calls;
  for (const CallSequences::Cell& cell : column.cells) {
    calls.push_back(cell.call.substr(0, cell.call.find(' ')));
  }
  return calls;
}

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("ranks with equal calls share a column and the missing call is the first difference") {
  const CallSequences sequences = call_sequences(hang(64, 5));
  REQUIRE(sequences.columns.size() == 2);
  CHECK(sequences.columns[0].ranks == RankSet::range(1, 63));
  CHECK(sequences.columns[1].ranks == RankSet{0});
  CHECK(sequences.columns[1].is_culprit);
  CHECK(sequences.earlier == 2);
  REQUIRE(sequences.rows == 4);
  CHECK(sequences.first_difference == 3);
  CHECK(sequences.columns[0].cells[3].call == "all_reduce #5 (float32 x 4, SUM)");
  CHECK(sequences.columns[0].cells[3].never_returned);
  CHECK(sequences.columns[1].cells[3].call.empty());
  CHECK(sequences.columns[1].cells[3].differs);
}

TEST_CASE("a call that one rank makes in addition has a row of its own") {
  Report report = samples::missing_rank(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    const std::int64_t shift = rank == 0 ? 1 : 0;
    record(report, {.rank = rank, .seq = 0, .start = 0, .end = 1});
    if (rank == 0) {
      record(report, {.rank = 0, .seq = 1, .start = 2, .end = 3, .op = "barrier", .arguments = ""});
    }
    record(report, {.rank = rank, .seq = 1 + shift, .start = 4, .end = 5, .op = "broadcast"});
    record(report, {.rank = rank, .seq = 2 + shift, .start = 6, .end = 7});
  }
  const CallSequences sequences = call_sequences(report);
  REQUIRE(sequences.columns.size() == 2);
  CHECK(calls_of(sequences.columns[0]) == Calls{"all_reduce", "", "broadcast", "all_reduce"});
  CHECK(calls_of(sequences.columns[1]) == Calls{"all_reduce", "barrier", "broadcast", "all_reduce"});
  CHECK(sequences.first_difference == 1);
}

TEST_CASE("different calls in the same place stand side by side") {
  Report report = samples::size_mismatch();
  record_common(report, 2);
  for (Rank rank = 0; rank < 4; ++rank) {
    record(report, {.rank = rank, .seq = 2, .start = 20, .end = 25, .numel = rank == 3 ? 5 : 4});
  }
  const CallSequences sequences = call_sequences(report);
  REQUIRE(sequences.columns.size() == 2);
  CHECK(sequences.rows == 3);
  CHECK(sequences.first_difference == 2);
  CHECK(sequences.columns[1].cells[2].call == "all_reduce #2 (float32 x 5, SUM)");
}

TEST_CASE("a reduction that differs is a difference") {
  Report report = samples::missing_rank(2);
  record(report, {.rank = 0, .start = 0, .end = 1, .arguments = "MAX"});
  record(report, {.rank = 1, .start = 0, .end = 1, .arguments = "SUM"});
  CHECK(call_sequences(report).first_difference == 0);
}

TEST_CASE("labels tell calls apart only where the wrong ones are known to have met") {
  Report report = blameless(2);
  report.groups = {{"world", {0, 1}}};
  for (Rank rank = 0; rank < 2; ++rank) {
    const std::string_view label = rank == 0 ? "loss" : "accuracy";
    record(report, {.rank = rank, .seq = 0, .start = 0, .end = 1, .label = label});
    record(report, {.rank = rank, .seq = 1, .start = 2, .end = 3, .label = label});
  }
  CHECK(call_sequences(report).columns.size() == 1);
  std::get<Deadlock>(report.verdict).finding.first_divergence = Divergence{"world", 1, {}};
  const CallSequences sequences = call_sequences(report);
  CHECK(sequences.columns.size() == 2);
  CHECK(sequences.first_difference == 1);
}

TEST_CASE("neighbors that pass messages on make the same calls") {
  Report report = blameless(4);
  for (Rank rank = 0; rank < 3; ++rank) {
    samples::record_message(report, rank, rank + 1, "send", 0);
  }
  const CallSequences sequences = call_sequences(report);
  REQUIRE(sequences.columns.size() == 2);
  CHECK(sequences.columns[0].ranks == RankSet::range(0, 2));
  CHECK(sequences.columns[0].cells[0].call == "send #0 to rank 1 (float32 x 4)");
}

TEST_CASE("calls on groups that only some of the ranks share are left out, but not where they are stuck") {
  Report report = blameless(2);
  report.groups = {{"world", {0, 1}}, {"a", {0}}, {"b", {1}}};
  record(report, {.rank = 0, .start = 0, .end = 1, .group = "a"});
  record(report, {.rank = 1, .start = 0, .end = 1, .group = "b"});
  record_common(report, 1);
  CHECK(call_sequences(report).columns.size() == 1);
  record(report, {.rank = 0, .seq = 1, .start = 30, .group = "a"});
  CHECK(call_sequences(report).columns.size() == 2);
}

TEST_CASE("a thousand calls in common are a number, not a table") {
  const CallSequences sequences = call_sequences(hang(3, 1000));
  CHECK(sequences.earlier == 997);
  CHECK(sequences.rows == 4);
}

TEST_CASE("of many different sequences the culprit's is shown") {
  Report report = samples::missing_rank(20);
  for (Rank rank = 0; rank < 20; ++rank) {
    record(report, {.rank = rank, .start = 0, .end = 1, .numel = rank + 1});
  }
  std::get<Deadlock>(report.verdict).finding.culprits = {17};
  const CallSequences sequences = call_sequences(report);
  CHECK(sequences.columns.size() == 6);
  CHECK(sequences.columns_left_out == 14);
  CHECK(std::ranges::count_if(sequences.columns, &CallSequences::Column::is_culprit) == 1);
}

TEST_CASE("without a timeline there are no sequences of calls") {
  CHECK(call_sequences(samples::missing_rank(4)).rows == 0);
}

}  // namespace rollcall::viz
