#include "viz/rows/call_sequences.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/unit/viz/recorded_calls.h"
#include "tests/unit/viz/sample_reports.h"
#include "viz/rows/message_pairs.h"

namespace rollcall::viz::call_sequences_test {

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

// Culprits have columns of their own; here no rank is a culprit.
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
  CHECK(sequences.columns[0].cells[0].call == "send to rank 1 (float32 x 4)");
}

TEST_CASE("calls stand in the order in which they were made, whenever they could begin") {
  Report report = blameless(2);
  for (Rank rank = 0; rank < 2; ++rank) {
    Span late = samples::span_of(report, {.rank = rank, .start = 90, .group = "tp"});
    late.issued = 10;
    report.timeline.add(late);
    record(report, {.rank = rank, .start = 20, .op = "barrier", .group = "dp"});
  }
  CHECK(calls_of(call_sequences(report).columns.front()) == Calls{"all_reduce", "barrier"});
}

TEST_CASE("ranks of a cycle that call the same on their own groups share a column") {
  Report report = blameless(4);
  report.groups = {{"dp 1", {0, 2}}, {"dp 2", {1, 3}}, {"tp 3", {0, 1}}, {"tp 4", {2, 3}}};
  Deadlock& deadlock = std::get<Deadlock>(report.verdict);
  deadlock.finding.culprits = {1, 2};
  deadlock.finding.at->call.group = "tp 3";
  for (const Rank rank : {0, 1, 2, 3}) {
    const bool crossed = rank == 1 || rank == 2;
    record(report, {.rank = rank, .start = crossed ? 20 : 10, .group = rank < 2 ? "tp 3" : "tp 4"});
    record(report, {.rank = rank, .start = crossed ? 10 : 20, .group = rank % 2 == 0 ? "dp 1" : "dp 2"});
  }
  const Call call = samples::all_reduce(0);
  report.ranks = {samples::waiting({0}, call, {1}), samples::waiting({1}, call, {3}),
                  samples::waiting({2}, call, {0}), samples::waiting({3}, call, {2})};
  const CallSequences sequences = call_sequences(report);
  REQUIRE(sequences.columns.size() == 2);
  CHECK(sequences.columns[0].ranks == RankSet{0, 3});
  CHECK(sequences.columns[0].cells[0].call == "all_reduce #0 on tp (float32 x 4, SUM)");
  CHECK(sequences.columns[1].ranks == RankSet{1, 2});
  CHECK(sequences.first_difference == 0);
}

namespace {

// Two pipelines of three stages, in which rank 4 forgets its second send to rank 5.
Report pipelines() {
  Report report = blameless(6);
  std::get<Deadlock>(report.verdict).finding.culprits = {4};
  for (Rank rank = 0; rank < 6; ++rank) {
    for (Time step = 0; step < 2; ++step) {
      const Time start = 100 * step + 10 * rank;
      const bool is_stuck = rank == 5 && step == 1;
      if (rank % 3 > 0) {
        samples::record_message(report, rank, rank - 1, "recv", start, is_stuck ? Span::open : start + 5);
      }
      if (rank % 3 < 2 && !(rank == 4 && step == 1)) {
        samples::record_message(report, rank, rank + 1, "send", start + 6, start + 15);
      }
    }
  }
  return report;
}

}  // namespace

TEST_CASE("a stage of a pipeline is compared with the same stage of another one") {
  const CallSequences sequences = call_sequences(pipelines());
  REQUIRE(sequences.columns.size() == 2);
  CHECK(sequences.columns[0].ranks == RankSet{1});
  CHECK(sequences.columns[1].ranks == RankSet{4});
  CHECK(sequences.first_difference == 3);
  CHECK(sequences.columns[1].cells[3].call.empty());
}

TEST_CASE("a stage without its like is compared with nobody") {
  Report report = blameless(2);
  std::get<Deadlock>(report.verdict).finding.culprits = {0};
  samples::record_message(report, 0, 1, "send", 0, 5);
  samples::record_message(report, 1, 0, "recv", 0, 5);
  CHECK(call_sequences(report).rows == 0);
}

TEST_CASE("the workers of one server, and the ranks of a ring, are alike") {
  Report star = blameless(4);
  std::get<Deadlock>(star.verdict).finding.culprits = {3};
  for (Rank rank = 1; rank < 4; ++rank) {
    samples::record_message(star, rank, 0, "send", 0, 5);
    samples::record_message(star, 0, rank, "recv", 0, 5);
  }
  samples::record_message(star, 1, 0, "send", 10);
  samples::record_message(star, 2, 0, "send", 10);
  REQUIRE(call_sequences(star).columns.size() == 2);
  CHECK(call_sequences(star).columns[0].ranks == RankSet{1, 2});
  Report ring = blameless(3);
  std::get<Deadlock>(ring.verdict).finding.culprits = {2};
  for (Rank rank = 0; rank < 3; ++rank) {
    samples::record_message(ring, rank, (rank + 1) % 3, "send", 0, 5);
    samples::record_message(ring, rank, (rank + 2) % 3, "recv", 6, 8);
  }
  CHECK(call_sequences(ring).columns.size() > 1);
}

TEST_CASE("the two ends of a message have one number, and the end that is missing is named") {
  const std::vector<MessagePairs> pairs = message_pairs(pipelines());
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].sender == 4);
  CHECK(pairs[0].receiver == 5);
  REQUIRE(pairs[0].rows.size() == 2);
  CHECK(pairs[0].rows[0].number == 0);
  CHECK(pairs[0].rows[0].sent.call == "send to rank 5 (float32 x 4)");
  CHECK(pairs[0].rows[0].received.call == "recv from rank 4 (float32 x 4)");
  CHECK(pairs[0].rows[1].sent.differs);
  CHECK(pairs[0].rows[1].received.never_returned);
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

}  // namespace rollcall::viz::call_sequences_test
