// The judge over many small jobs: every kind of fault at many places, on first, middle and last ranks.

#include "tests/unit/diagnose/dump_job.h"
#include "tests/catch.h"

#include "sim/diagnose/dump_judge.h"

namespace rollcall::check::dump_job_test {
namespace {

using test::DumpJob;
using test::PlannedCall;

constexpr int steps = 6;

struct Shape {
  Rank world;
  Rank tensor;
};

constexpr Shape shapes[] = {{3, 1}, {4, 1}, {8, 1}, {8, 2}, {16, 4}, {24, 8}};

// Calls `check` with a fresh job, a culprit and a place past the first steps, for all of them.
template <typename Check>
void for_all(const Check& check) {
  for (const Shape& shape : shapes) {
    const std::size_t calls = DumpJob(shape.world, shape.tensor, steps).calls_of(0).size();
    for (const Rank culprit : {Rank{0}, shape.world / 2, shape.world - 1}) {
      for (std::size_t place = calls / 2; place + 4 < calls; ++place) {
        DumpJob job(shape.world, shape.tensor, steps);
        CAPTURE(shape.world, shape.tensor, culprit, place);
        check(job, culprit, place);
      }
    }
  }
}

}  // namespace

TEST_CASE("wherever a rank stops, it is the one that is stuck", "[dump]") {
  for_all([](DumpJob& job, Rank culprit, std::size_t place) {
    job.calls_of(culprit).resize(place);
    const Diagnosis diagnosis = judge_dump(job.run());
    CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
    CHECK(diagnosis.finding.culprits == RankSet{culprit});
  });
}

TEST_CASE("wherever a rank dies without a dump, it is the one that crashed", "[dump]") {
  for_all([](DumpJob& job, Rank culprit, std::size_t place) {
    job.calls_of(culprit).resize(place);
    JobDump dumps = job.run();
    std::erase_if(dumps.ranks, [culprit](const RankDump& dump) { return dump.rank == culprit; });
    const Diagnosis diagnosis = judge_dump(dumps);
    CHECK(diagnosis.finding.kind == FindingKind::crashed_rank);
    CHECK(diagnosis.finding.culprits == RankSet{culprit});
  });
}

TEST_CASE("wherever a size or an operation differs, the rank is named", "[dump]") {
  for_all([](DumpJob& job, Rank culprit, std::size_t place) {
    DumpJob other = job;
    job.calls_of(culprit)[place].numel += 7;
    Diagnosis diagnosis = judge_dump(job.run());
    CHECK(diagnosis.finding.kind == FindingKind::size_mismatch);
    CHECK(diagnosis.finding.culprits.contains(culprit));  // of two members, both may be named
    other.calls_of(culprit)[place].op = "broadcast";
    diagnosis = judge_dump(other.run());
    CHECK(diagnosis.finding.kind == FindingKind::op_type_mismatch);
    CHECK(diagnosis.finding.culprits.contains(culprit));
  });
}

TEST_CASE("wherever a rank leaves out a call, nobody else is named", "[dump]") {
  for_all([](DumpJob& job, Rank culprit, std::size_t place) {
    std::vector<PlannedCall>& calls = job.calls_of(culprit);
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(place));
    const Diagnosis diagnosis = judge_dump(job.run());
    CHECK(diagnosis.finding.kind != FindingKind::no_fault);
    CHECK(diagnosis.finding.culprits.contains(culprit));
  });
}

TEST_CASE("wherever a rank makes a call of its own on all ranks' group, it is named", "[dump]") {
  for_all([](DumpJob& job, Rank culprit, std::size_t place) {
    std::vector<PlannedCall>& calls = job.calls_of(culprit);
    calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(place), {"all_reduce", 33, 0});
    const Diagnosis diagnosis = judge_dump(job.run());
    CHECK(diagnosis.finding.kind != FindingKind::no_fault);
    CHECK(diagnosis.finding.culprits.contains(culprit));
  });
}

TEST_CASE("a job of any shape that runs through has no fault", "[dump]") {
  for (const Shape& shape : shapes) {
    CHECK(judge_dump(DumpJob(shape.world, shape.tensor, steps).run()).finding.kind == FindingKind::no_fault);
  }
}

}  // namespace rollcall::check::dump_job_test
