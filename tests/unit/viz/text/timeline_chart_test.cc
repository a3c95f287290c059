#include "viz/text/timeline_chart.h"

#include "tests/catch.h"
#include "tests/unit/viz/sample_reports.h"
#include "viz/rows/rank_profile.h"

namespace rollcall::viz::timeline_chart_test {

namespace {

// 3 ranks for 8 ms: all compute, rank 0 twice as long; then a collective; then rank 2 never returns.
Report three_ranks(bool hangs) {
  Report report = hangs ? samples::missing_rank(3) : samples::completed(3);
  report.simulated_time = 8 * millisecond;
  const auto add = [&report](Rank rank, Span::Kind kind, std::int64_t seq, Time start, Time end) {
    Span span;
    span.kind = kind;
    span.rank = rank;
    span.seq = seq;
    span.start = start * millisecond;
    span.end = end == Span::open ? end : end * millisecond;
    span.name = report.timeline.intern(kind == Span::Kind::compute ? "compute" : "all_reduce");
    span.group = kind == Span::Kind::compute ? 0 : report.timeline.intern("world");
    report.timeline.add(span);
  };
  for (const Rank rank : {0, 1, 2}) {
    const Time ready = rank == 0 ? 4 : 2;
    add(rank, Span::Kind::compute, -1, 0, ready);
    add(rank, Span::Kind::collective, 0, ready, 6);
  }
  add(1, Span::Kind::compute, -1, 6, 8);
  if (hangs) {
    add(2, Span::Kind::collective, 1, 6, Span::open);
  }
  return report;
}

}  // namespace

TEST_CASE("the chart shows who computes, waits and transfers, and for how long", "[chart]") {
  CHECK(timeline_chart(three_ranks(false), {}, {.ascii = true, .columns = 24}) ==
        "        0.000 ms        8.000 ms\n"
        "rank 0  ############======......\n"
        "rank 1  ######------======######\n"
        "rank 2  ######------======......\n"
        "        # computing   = transferring   - waiting for others\n");
}

TEST_CASE("time in calls about groups and on the store is waiting", "[chart]") {
  Report report = samples::completed(1);
  report.simulated_time = 8 * millisecond;
  Span span;
  span.kind = Span::Kind::host;
  span.start = 2 * millisecond;
  span.end = 6 * millisecond;
  report.timeline.add(span);
  CHECK_THAT(timeline_chart(report, {}, {.ascii = true, .columns = 24}),
             Contains("......------------......"));
}

TEST_CASE("a call that never returned goes on behind the end, and the culprit is marked", "[chart]") {
  const std::string chart = timeline_chart(three_ranks(true), {}, {.ascii = true, .columns = 27});
  CHECK_THAT(chart, Contains("rank 0  ############======.........  < culprit\n"));
  CHECK_THAT(chart, Contains("rank 2  ######------======xxxxxxxxx\n"));
  CHECK_THAT(chart, Contains("8.000 ms, then forever"));
  CHECK_THAT(chart, Contains("x never returned"));
}

TEST_CASE("ranks that did the same share a row, and a window shows a part", "[chart]") {
  TraceOptions first;
  first.until = 2 * millisecond;
  CHECK_THAT(timeline_chart(three_ranks(false), first, {.ascii = true, .columns = 4}),
             Contains("ranks 0-2  ####\n"));
  TraceOptions one;
  one.ranks = RankSet{1};
  CHECK_THAT(timeline_chart(three_ranks(false), one, {.ascii = true, .columns = 8}),
             !Contains("rank 0") && Contains("rank 1  ##--==##\n"));
}

TEST_CASE("a chart of many different ranks is cut, and never the culprit's row", "[chart]") {
  Report report = samples::missing_rank(3);
  report.world_size = 100;
  report.simulated_time = 1000;
  std::get<Deadlock>(report.verdict).finding.culprits = RankSet{77};
  for (Rank rank = 0; rank < 100; ++rank) {
    Span span;
    span.kind = Span::Kind::compute;
    span.rank = rank;
    span.end = rank * 10;
    report.timeline.add(span);
  }
  const std::string chart = timeline_chart(report, {}, {.ascii = true, .columns = 100, .rows_max = 10});
  CHECK_THAT(chart, Contains("rank 77") && Contains("< culprit"));
  CHECK_THAT(chart, Contains("more rows; choose with --trace-ranks"));
  CHECK(std::count(chart.begin(), chart.end(), '\n') <= 14);
}

TEST_CASE("an empty run has an empty chart", "[chart]") {
  Report report = samples::completed(2);
  report.simulated_time = 0;
  CHECK_THAT(timeline_chart(report, {}, {.ascii = true, .columns = 5}), Contains("ranks 0-1  .....\n"));
}

TEST_CASE("Unicode and color are choices of the style", "[chart]") {
  const Report report = three_ranks(true);
  CHECK_THAT(timeline_chart(report, {}, {}), Contains("█") && Contains("◀ culprit"));
  CHECK_THAT(timeline_chart(report, {}, {.color = true}), Contains("\x1b["));
  CHECK_THAT(timeline_chart(report, {}, {}), !Contains("\x1b["));
}

TEST_CASE("a profile says where each rank's time went", "[profile]") {
  const RunProfile profile = profile_of(three_ranks(false));
  REQUIRE(profile.ranks.size() == 3);
  const RankProfile& second = profile.ranks[1];
  CHECK(second.ranks == RankSet{1});
  CHECK(second.compute == 4 * millisecond);
  CHECK(second.waiting == 2 * millisecond);
  CHECK(second.transfer == 2 * millisecond);
  CHECK(second.exposed() == 4 * millisecond);
  CHECK(second.hidden == 0);
  CHECK(second.rest == 0);
  CHECK(profile.ranks[0].waiting == 0);
  CHECK(profile.ranks[0].rest == 2 * millisecond);
}

TEST_CASE("communication behind computing is hidden, not exposed", "[profile]") {
  Report report = samples::completed(1);
  report.simulated_time = 10;
  Span compute;
  compute.kind = Span::Kind::compute;
  compute.end = 6;
  report.timeline.add(compute);
  Span call;
  call.seq = 0;
  call.start = 4;
  call.end = 10;
  report.timeline.add(call);
  const RankProfile profile = profile_of(report).ranks.at(0);
  CHECK(profile.compute == 6);
  CHECK(profile.hidden == 2);
  CHECK(profile.transfer == 4);
  CHECK(profile.compute + profile.exposed() + profile.rest == 10);
}

}  // namespace rollcall::viz::timeline_chart_test
