#include "scenarios/format/expectation.h"

#include <string>
#include <vector>

#include "sim/report/report.h"
#include "tests/catch.h"

namespace rollcall::scenario::expectation_test {
namespace {

using Sentences = std::vector<std::string>;

// Rank 0 is missing from the sixth all_reduce.
Report deadlock() {
  Finding finding;
  finding.kind = FindingKind::missing_participant;
  finding.culprits = {0};
  finding.at = Place{{}, {1, 2, 3}, {0}};
  finding.at->call.op = "all_reduce";
  finding.at->call.group = "world";
  finding.at->call.seq = 5;
  Report report;
  report.verdict = Deadlock{finding};
  report.output = {{.rank = 0, .text = "zero"},
                   {.rank = 1, .text = "one"},
                   {.rank = 1, .warning = true, .text = "UserWarning: skewed"},
                   {.rank = 1, .text = "more"}};
  return report;
}

}  // namespace

TEST_CASE("without an expectation a scenario is to complete", "[scenarios]") {
  CHECK(unmet({}, Report{}).empty());
  CHECK(unmet({}, deadlock()) == Sentences{"verdict: expected ok, got deadlock"});
}

TEST_CASE("a report that agrees in everything asked for is as expected", "[scenarios]") {
  Expectation expected;
  expected.verdict = "deadlock";
  CHECK(unmet(expected, deadlock()).empty());
  expected.kind = FindingKind::missing_participant;
  expected.culprits = RankSet{0};
  expected.at = Expectation::At{"all_reduce", "world", 5, RankSet{1, 2, 3}, RankSet{0}};
  expected.output = Sentences{"zero", "one", "more"};
  expected.prints = {{RankSet{0}, {"zero"}}, {RankSet{1}, {"one", "more"}}, {RankSet{2, 3}, {}}};
  CHECK(unmet(expected, deadlock()).empty());
}

TEST_CASE("every disagreement is one sentence", "[scenarios]") {
  Expectation expected;
  expected.verdict = "mismatch";
  expected.kind = FindingKind::order_crossing;
  expected.culprits = RankSet{1};
  expected.at = Expectation::At{"barrier", "evens", 4, RankSet{1}, RankSet{0, 2}};
  expected.output = Sentences{"zero", "two"};
  expected.prints = {{RankSet{0, 1}, {"zero"}}, {RankSet{1}, {"one", "more", "and more"}}};
  CHECK(unmet(expected, deadlock()) ==
        Sentences{"verdict: expected mismatch, got deadlock",
                  "kind: expected order_crossing, got missing_participant", "culprits: expected 1, got 0",
                  "at.op: expected barrier, got all_reduce", "at.group: expected evens, got world",
                  "at.seq: expected 4, got 5", "at.waiting: expected 1, got 1-3",
                  "at.missing: expected 0,2, got 0", "prints, line 2: expected \"two\", got \"one\"",
                  "prints of rank 1, line 1: expected \"zero\", got \"one\"",
                  "prints of rank 1, line 3: expected \"and more\", got nothing more"});
}

TEST_CASE("a fault may be expected in the words of recordings", "[scenarios]") {
  Report report;
  Deadlock deadlock;
  deadlock.finding.kind = FindingKind::rank_crashed;
  report.verdict = deadlock;
  Expectation expected;
  expected.verdict = "deadlock";
  expected.kind = FindingKind::crashed_rank;
  CHECK(unmet(expected, report).empty());
  expected.kind = FindingKind::stuck_host;
  CHECK(unmet(expected, report) == Sentences{"kind: expected stuck_host, got rank_crashed"});
}

TEST_CASE("a completed run has no culprits and no place", "[scenarios]") {
  Expectation expected;
  expected.kind = FindingKind::missing_participant;
  expected.culprits = RankSet{0};
  expected.at = Expectation::At{};
  CHECK(unmet(expected, Report{}) == Sentences{"kind: expected missing_participant, got none",
                                               "culprits: expected 0, got none",
                                               "at: expected a place where the run failed, got none"});
}

TEST_CASE("values of tensors are compared rank by rank, and say what they are instead", "[scenarios]") {
  Report report;
  report.values = {{0, "t", 1000, {10}}, {1, "t", 3, {1, 2, 3}}};
  Expectation expected;
  expected.values = {{RankSet{0}, "t", {10}}, {RankSet{1}, "t", {1, 2, 3}}};
  CHECK(unmet(expected, report).empty());
  expected.values = {
      {RankSet{0, 1}, "t", {10}}, {RankSet{1}, "t", {1, 2}}, {RankSet{0}, "t", {11}}, {RankSet{2}, "t", {1}}};
  CHECK(unmet(expected, report) ==
        Sentences{"values of rank 1: expected t to be 10, got [1, 2, 3]",
                  "values of rank 1: expected t to be [1, 2], got [1, 2, 3]",
                  "values of rank 0: expected t to be 11, got 10 x 1000",
                  "values of rank 2: expected t to be 1, but the rank has none when the run ends"});
  report.measured = true;
  CHECK(unmet(expected, report).empty());
}

TEST_CASE("calls are counted of all ranks together or of each", "[scenarios]") {
  Report report;
  report.world_size = 3;
  Span span;
  span.name = report.timeline.intern("barrier");
  for (Rank rank : {0, 1, 1, 2}) {
    span.rank = rank;
    report.timeline.add(span);
  }
  Expectation expected;
  expected.counts = {
      {std::nullopt, "barrier", 4}, {RankSet{0, 2}, "barrier", 1}, {RankSet{1}, "all_reduce", 0}};
  CHECK(unmet(expected, report).empty());
  CHECK(expected.needs_timeline());
  expected.counts = {{std::nullopt, "barrier", 5}, {RankSet{0, 1, 2}, "barrier", 2}};
  CHECK(unmet(expected, report) ==
        Sentences{"counts: calls of barrier by all ranks: expected 5, got 4",
                  "counts: calls of barrier by each of ranks 0,2: expected 2, got 1"});
}

TEST_CASE("a run that costs more than it may is not as expected", "[scenarios]") {
  Report report;
  report.world_size = 2;
  report.simulated_time = 30;
  Span span;
  span.shadow = true;
  span.name = report.timeline.intern("all_reduce");
  for (Rank rank : {0, 1}) {  // rank 0 waits 20 ns for rank 1
    span.rank = rank;
    span.start = 20 * rank;
    span.end = 30;
    report.timeline.add(span);
  }
  Expectation expected;
  expected.at_most = {.simulated_time = 30, .shadow_collectives = 2, .idle_time = 20};
  CHECK(unmet(expected, report).empty());
  expected.at_most = {.simulated_time = 29, .shadow_collectives = 1, .idle_time = 19};
  CHECK(unmet(expected, report) == Sentences{"simulated time: expected at most 29 ns, got 30 ns",
                                             "shadow collectives: expected at most 1, got 2",
                                             "idle time of all ranks: expected at most 19 ns, got 20 ns"});
}

}  // namespace rollcall::scenario::expectation_test
