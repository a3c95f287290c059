// Each dump shows a different moment, and a job that moves does not hang.

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/unit/diagnose/dump_builder.h"

namespace rollcall::check::dump_moments_test {
namespace {

using test::DumpBuilder;

void past(DumpBuilder& dumps, Rank rank, int count) {
  for (int i = 0; i < count; ++i) {
    dumps.call(rank, "all_reduce", 64);
  }
}

}  // namespace

TEST_CASE("a rank whose dump lacks calls that its peers have finished wrote its dump earlier", "[dump]") {
  DumpBuilder dumps(4);
  past(dumps, 0, 6);
  for (const Rank rank : {1, 2, 3}) {
    past(dumps, rank, 12);
    dumps.call(rank, "all_reduce", 64, false);
  }
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.finding.kind == FindingKind::no_fault);
  CHECK_THAT(diagnosis.evidence.front(), Contains("the job moved while they were written"));
}

TEST_CASE("rings that share no call are those of a job that moved, not counters that are off", "[dump]") {
  DumpBuilder dumps(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    past(dumps, rank, rank == 0 ? 30 : 100);
    auto& records = dumps.dump_of(rank).records;
    records.erase(records.begin(), records.end() - 20);
    dumps.dump_of(rank).from_start = false;
    dumps.call(rank, "all_reduce", 64, false).collective_seq = rank == 0 ? 31 : 101;
  }
  CHECK(judge_dump(dumps.job).finding.kind == FindingKind::no_fault);
}

TEST_CASE("that a call is in flight everywhere is no finding before time has passed", "[dump]") {
  DumpBuilder dumps(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    past(dumps, rank, 8);
    dumps.call(rank, "all_reduce", 64, false);
  }
  CHECK(judge_dump(dumps.job).finding.kind == FindingKind::no_fault);
  dumps.everyone_silent();
  CHECK(judge_dump(dumps.job).finding.kind == FindingKind::stall_all_arrived);
}

TEST_CASE("a pause that is longer than any before is no proof of a hang", "[dump]") {
  DumpBuilder dumps(4);
  for (Rank rank = 0; rank < 4; ++rank) {
    past(dumps, rank, 8);
    if (rank != 0) {
      dumps.call(rank, "all_reduce", 64, false);
      dumps.silence(rank, 1'500'000'000);
    }
  }
  const Diagnosis diagnosis = judge_dump(dumps.job);
  CHECK(diagnosis.confidence != Diagnosis::Confidence::high);
  CHECK_THAT(diagnosis.would_settle.back(), Contains("second dump"));
}

}  // namespace rollcall::check::dump_moments_test
