#include "viz/rows/shadow_pairs.h"

#include "tests/catch.h"
#include "tests/unit/viz/sample_reports.h"

namespace rollcall::viz::shadow_pairs_test {

namespace {

// One collective of one rank on the world.
void add(Report& report, Rank rank, std::int64_t seq, std::int64_t numel, bool shadow) {
  Span span;
  span.rank = rank;
  span.seq = seq;
  span.numel = numel;
  span.start = seq * 10;
  span.end = span.start + 5;
  span.shadow = shadow;
  span.name = report.timeline.intern("all_reduce");
  span.group = report.timeline.intern("world");
  span.label = report.timeline.intern(shadow ? "hook" : "forward");
  report.timeline.add(span);
}

Report joined() {
  Report report;
  report.world_size = 2;
  report.verdict = Completed{};
  return report;
}

}  // namespace

TEST_CASE("without a shadow there is nothing to lay beside the forward") {
  Report report = joined();
  add(report, 0, 0, 4, false);
  add(report, 1, 0, 4, false);
  CHECK_FALSE(shadow_pairs(report));
}

TEST_CASE("a shadow that calls what the forward calls has no difference") {
  Report report = joined();
  for (std::int64_t seq = 0; seq < 30; ++seq) {
    add(report, 0, seq, 4, seq > 3);
    add(report, 1, seq, 4, false);
  }
  const auto pairs = shadow_pairs(report);
  REQUIRE(pairs);
  CHECK(pairs->joined == 0);
  CHECK(pairs->active == 1);
  CHECK_FALSE(pairs->first_difference);
  CHECK(pairs->rows.size() < 10);
  CHECK(pairs->rows.back().seq == 29);
}

TEST_CASE("the first call in which a shadow differs is marked, with calls around it") {
  Report report = joined();
  for (std::int64_t seq = 0; seq < 30; ++seq) {
    add(report, 0, seq, seq == 20 ? 5 : 4, seq > 3);
    add(report, 1, seq, 4, false);
  }
  const auto pairs = shadow_pairs(report);
  REQUIRE(pairs);
  REQUIRE(pairs->first_difference);
  const ShadowPairs::Row& row = pairs->rows[*pairs->first_difference];
  CHECK(row.seq == 20);
  CHECK(row.shadow.differs);
  CHECK(row.shadow.call == "all_reduce #20 (float32 x 5)");
  CHECK(row.forward.origin == " from forward");
  CHECK(pairs->rows.back().seq == 25);
}

TEST_CASE("a hook that is one call short shows it where its calls end") {
  Report report = joined();
  add(report, 0, 0, 4, true);
  for (std::int64_t seq = 0; seq < 2; ++seq) {
    add(report, 1, seq, 4, false);
  }
  const auto pairs = shadow_pairs(report);
  REQUIRE(pairs);
  REQUIRE(pairs->first_difference == 1);
  CHECK(pairs->rows[1].shadow.call.empty());
}

TEST_CASE("calls that look alike and do not belong together are marked where that is known") {
  Report report = joined();
  for (std::int64_t seq = 0; seq < 4; ++seq) {
    add(report, 0, seq, 1, true);
    add(report, 1, seq, 1, false);
  }
  WrongResult verdict;
  verdict.finding.first_divergence = Divergence{"world", 2, {}};
  report.verdict = verdict;
  const auto pairs = shadow_pairs(report);
  REQUIRE(pairs);
  REQUIRE(pairs->first_difference);
  CHECK(pairs->rows[*pairs->first_difference].seq == 2);
}

}  // namespace rollcall::viz::shadow_pairs_test
