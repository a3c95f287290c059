#include "scenarios/expectation.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/report/report.h"

namespace rollcall::scenario {
namespace {

using Sentences = std::vector<std::string>;

// Rank 0 is missing from the sixth all_reduce.
Report deadlock() {
  Finding finding;
  finding.kind = "missing_participant";
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
  expected.kind = "missing_participant";
  expected.culprits = RankSet{0};
  expected.at = Expectation::At{"all_reduce", "world", 5, RankSet{1, 2, 3}, RankSet{0}};
  expected.output = Sentences{"zero", "one", "more"};
  expected.prints = {{RankSet{0}, {"zero"}}, {RankSet{1}, {"one", "more"}}, {RankSet{2, 3}, {}}};
  CHECK(unmet(expected, deadlock()).empty());
}

TEST_CASE("every disagreement is one sentence", "[scenarios]") {
  Expectation expected;
  expected.verdict = "mismatch";
  expected.kind = "swapped";
  expected.culprits = RankSet{1};
  expected.at = Expectation::At{"barrier", "evens", 4, RankSet{1}, RankSet{0, 2}};
  expected.output = Sentences{"zero", "two"};
  expected.prints = {{RankSet{0, 1}, {"zero"}}, {RankSet{1}, {"one", "more", "and more"}}};
  CHECK(unmet(expected, deadlock()) ==
        Sentences{"verdict: expected mismatch, got deadlock",
                  "kind: expected swapped, got missing_participant", "culprits: expected 1, got 0",
                  "at.op: expected barrier, got all_reduce", "at.group: expected evens, got world",
                  "at.seq: expected 4, got 5", "at.waiting: expected 1, got 1-3",
                  "at.missing: expected 0,2, got 0", "prints, line 2: expected \"two\", got \"one\"",
                  "prints of rank 1, line 1: expected \"zero\", got \"one\"",
                  "prints of rank 1, line 3: expected \"and more\", got nothing more"});
}

TEST_CASE("a completed run has no culprits and no place", "[scenarios]") {
  Expectation expected;
  expected.kind = "missing_participant";
  expected.culprits = RankSet{0};
  expected.at = Expectation::At{};
  CHECK(unmet(expected, Report{}) == Sentences{"kind: expected missing_participant, got none",
                                               "culprits: expected 0, got none",
                                               "at: expected a place where the run came apart, got none"});
}

}  // namespace rollcall::scenario
