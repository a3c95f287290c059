#include "traces/dumps/dump_report.h"

#include <algorithm>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/unit/diagnose/dump_builder.h"

namespace rollcall::traces::dump_report_test {

namespace {

using check::test::DumpBuilder;

Report recorded(const check::JobDump& job) { return report_of(job, check::judge_dump(job), "dumps").report; }

std::vector<Span> spans_of(const Report& report, Rank rank) {
  std::vector<Span> spans;
  std::ranges::copy_if(report.timeline.spans(), std::back_inserter(spans),
                       [rank](const Span& span) { return span.rank == rank; });
  return spans;
}

}  // namespace

TEST_CASE("a dump's records are a timeline that begins with the first of them", "[traces]") {
  DumpBuilder builder(2);
  for (const Rank rank : {0, 1}) {
    builder.call(rank, "all_reduce", 1000);
  }
  builder.call(0, "all_reduce", 1000, false);
  const Report report = recorded(builder.job);
  REQUIRE(report.timeline.spans().size() == 4);  // including the one that rank 1 owes
  const std::vector<Span> spans = spans_of(report, 0);
  CHECK(spans[0].start == 0);
  CHECK(spans[0].end > 0);
  CHECK(spans[0].numel == 1000);
  CHECK(report.timeline.name(spans[0].name) == "all_reduce");
  CHECK(spans[1].end == Span::open);
  CHECK(verdict_word(report.verdict) == "deadlock");
  CHECK(report.of(0).state == RankClass::State::waiting);
  CHECK(report.of(0).waits_for == RankSet{1});
}

TEST_CASE("where calls disagree, every rank is in its own", "[traces]") {
  DumpBuilder builder(3);
  for (const Rank rank : {0, 1, 2}) {
    builder.call(rank, "all_reduce", 1000);
  }
  for (const Rank rank : {0, 1, 2}) {
    builder.call(rank, "all_reduce", rank == 2 ? 7 : 1000, false);
  }
  const Report report = recorded(builder.job);
  CHECK(report.of(0).call->numel == 1000);
  CHECK(report.of(2).call->numel == 7);
}

TEST_CASE("ends that were noticed together are not drawn as durations", "[traces]") {
  DumpBuilder builder(2);
  for (const Rank rank : {0, 1}) {
    for (int i = 0; i < 4; ++i) {
      check::DumpRecord& record = builder.call(rank, "all_reduce");
      record.created_ns = 1'000'000 + i * 5'000'000 + rank * 1'000'000;  // rank 1 is later
      record.completed_ns = 100'000'000 + i * 1'000;                     // noticed together, long after
    }
  }
  for (const Rank rank : {0, 1}) {
    const std::vector<Span> spans = spans_of(recorded(builder.job), rank);
    REQUIRE(spans.size() == 4);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(spans[i].start == static_cast<Time>(i) * 5'000'000 + rank * 1'000'000);
      CHECK(spans[i].end - spans[i].start <= 5'000'000);
      CHECK(spans[i].end > spans[i].start);
    }
  }
}

TEST_CASE("collectives of one group stand one after the other, whenever they were queued", "[traces]") {
  DumpBuilder builder(2);
  for (const Rank rank : {0, 1}) {
    for (int i = 0; i < 3; ++i) {
      check::DumpRecord& record = builder.call(rank, "all_reduce");
      record.created_ns = 1'000'000;  // all queued at once
      record.completed_ns = 2'000'000 + i * 1'000'000;
    }
  }
  const std::vector<Span> spans = spans_of(recorded(builder.job), 1);
  REQUIRE(spans.size() == 3);
  CHECK(spans[1].start == spans[0].end);
  CHECK(spans[2].start == spans[1].end);
  CHECK(spans[2].end == 3'000'000);
}

TEST_CASE("of calls that never ended the first few are drawn", "[traces]") {
  DumpBuilder builder(2);
  for (int i = 0; i < 100; ++i) {
    builder.call(0, "all_reduce", 1, false);
  }
  const std::vector<Span> spans = spans_of(recorded(builder.job), 0);
  CHECK(spans.size() < 10);
  CHECK(spans.front().seq < spans.back().seq);
}

TEST_CASE("without times, records stand in the order of their rank", "[traces]") {
  DumpBuilder builder(2);
  for (const Rank rank : {0, 1}) {
    for (int i = 0; i < 3; ++i) {
      check::DumpRecord& record = builder.call(rank, "all_reduce");
      record.created_ns = record.completed_ns = record.started_ns = 0;
    }
  }
  const std::vector<Span> spans = spans_of(recorded(builder.job), 0);
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].start < spans[1].start);
  CHECK(spans[1].start < spans[2].start);
}

TEST_CASE("a rank that owes a call has an open span at the end, for which the others wait", "[traces]") {
  DumpBuilder builder(3);
  for (const Rank rank : {0, 1, 2}) {
    builder.call(rank, "all_reduce");
  }
  builder.call(0, "all_reduce", 1, false);
  builder.call(2, "all_reduce", 1, false);
  const RecordedReport recorded = report_of(builder.job, check::judge_dump(builder.job), "dumps");
  const Timeline& timeline = recorded.report.timeline;
  REQUIRE(recorded.waits.size() == 1);
  const Span& owed = timeline.spans()[recorded.waits[0].cause];
  CHECK(owed.rank == 1);
  CHECK(owed.end == Span::open);
  CHECK(timeline.name(owed.name) == "not issued: all_reduce");
  REQUIRE(recorded.waits[0].waiting.size() == 2);
  CHECK(timeline.spans()[recorded.waits[0].waiting[0]].rank == 0);
  CHECK(timeline.spans()[recorded.waits[0].waiting[1]].rank == 2);
}

TEST_CASE("a clock that is hours ahead is moved to the others'", "[traces]") {
  constexpr std::int64_t hour_ns = 3'600'000'000'000;
  DumpBuilder builder(2);
  for (const Rank rank : {0, 1}) {
    for (int i = 0; i < 3; ++i) {
      check::DumpRecord& record = builder.call(rank, "all_reduce");
      record.created_ns = 1'000'000 + i * 1'000'000 + rank * hour_ns;
      record.completed_ns = record.created_ns + 500'000;
    }
  }
  const Report report = recorded(builder.job);
  CHECK(report.simulated_time < hour_ns);
  CHECK(spans_of(report, 1).front().start == spans_of(report, 0).front().start);
}

TEST_CASE("two groups of one description have two names, and the fault is in one of them", "[traces]") {
  DumpBuilder builder(4);
  const std::uint32_t first = builder.group("7", "mesh_tp", {0, 1});
  const std::uint32_t second = builder.group("8", "mesh_tp", {2, 3});
  builder.call(0, "all_reduce", 1, true, first);
  builder.call(1, "all_reduce", 1, true, first);
  builder.call(2, "all_reduce", 1, false, second);
  Diagnosis diagnosis;
  diagnosis.finding.kind = FindingKind::stuck_host;
  diagnosis.world_size = 4;
  diagnosis.group_name = "8";
  diagnosis.group_ranks = RankSet{2, 3};
  diagnosis.finding.at.emplace().call.group = "mesh_tp";
  const Report report = report_of(builder.job, diagnosis, "dumps").report;
  REQUIRE(report.groups.size() == 3);
  CHECK(report.groups[1].name == "mesh_tp 7");
  CHECK(report.groups[2].name == "mesh_tp 8");
  const Finding* finding = finding_of(report.verdict);
  REQUIRE(finding != nullptr);
  REQUIRE(finding->at);
  CHECK(finding->at->call.group == "mesh_tp 8");
}

}  // namespace rollcall::traces::dump_report_test
