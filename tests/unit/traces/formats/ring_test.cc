// Rings of observed ranks: what is read, and what is refused.

#include "traces/formats/ring.h"

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/folder.h"
#include "tests/unit/traces/ring_builder.h"
#include "traces/formats/recordings.h"
#include "traces/values/value.h"

namespace rollcall::traces::ring_test {
namespace {

using State = check::DumpRecord::State;
using rollcall::test::RingBuilder;

constexpr std::uint64_t begin = 1'790'000'000'000'000'000;
constexpr std::uint64_t step = 10'000'000;

// Returns a ring with `calls` calls, the last of which is not over, unless `is_through`.
std::string ring_of(Rank rank, std::uint64_t calls, bool is_through) {
  RingBuilder ring(rank, 3, 16);
  ring.world("0,1,2").call(1, "all_reduce");
  for (std::uint64_t i = 1; i <= calls; ++i) {
    const bool is_open = i == calls && !is_through;
    ring.issue(1, i, begin + i * step, is_open ? 0 : begin + i * step + 1000);
  }
  return ring.stands_still(begin + calls * step).bytes();
}

std::string problem_with(const std::string& bytes) {
  try {
    decode_ring(bytes);
  } catch (const BadFile& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a ring is read as its rank's calls, with lines, sizes and ends", "[watch]") {
  const std::string bytes = RingBuilder(2, 4)
                                .world("0,1,2,3")
                                .call(1, "all_reduce")
                                .call(2, "send", R"("in":[[7]],"in_dtypes":["int64"],"peer":0,"own":2)")
                                .issue(1, 1, begin, begin + 5)
                                .issue(2, 1, begin + 10, 0, 1, 1)
                                .bytes();
  const RankRecording recording = decode_ring(bytes);
  CHECK(recording.rank == 2);
  CHECK(recording.ranks_at_least == 4);
  CHECK(recording.dump.from_start);
  REQUIRE(recording.dump.records.size() == 2);
  const check::DumpRecord& first = recording.dump.records[0];
  CHECK(first.state == State::completed);
  CHECK(first.collective_seq == 1);
  CHECK(first.timeout_ms == 1'800'000);
  const check::DumpCall& call = recording.tables.calls.things()[first.call];
  CHECK(call.op == "all_reduce");
  CHECK(call.inputs == std::vector<std::vector<std::int64_t>>{{4}});
  CHECK(recording.tables.stacks.things()[first.stack].front().file == "/home/me/train.py");
  const check::DumpRecord& second = recording.dump.records[1];
  CHECK(second.is_p2p);
  CHECK(second.state == State::scheduled);
  CHECK_FALSE(second.retired);
  CHECK(recording.tables.calls.things()[second.call].source == 2);
  CHECK(recording.tables.calls.things()[second.call].destination == 0);
}

TEST_CASE("a ring that has wrapped says so, and keeps the last calls", "[watch]") {
  RingBuilder ring(0, 2, 4);
  ring.world("0,1").call(1, "all_reduce");
  for (std::uint64_t i = 1; i <= 10; ++i) {
    ring.issue(1, i, begin + i, begin + i + 1);
  }
  const RankRecording recording = decode_ring(ring.bytes());
  CHECK_FALSE(recording.dump.from_start);
  CHECK(recording.dump.without_gaps);
  REQUIRE(recording.dump.records.size() == 4);
  CHECK(recording.dump.records.front().collective_seq == 7);
}

TEST_CASE("rings of a job that stands still name the rank that does not come", "[watch]") {
  const rollcall::test::Folder folder;
  folder.write("rank_0.ring", ring_of(0, 9, false));
  folder.write("rank_1.ring", ring_of(1, 8, true));
  folder.write("rank_2.ring", ring_of(2, 9, false));
  const ReadResult read = read_recordings({folder.path()});
  CHECK(read.problems.empty());
  const Diagnosis diagnosis = check::judge_dump(read.job);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  CHECK(diagnosis.confidence == Diagnosis::Confidence::high);
}

TEST_CASE("what became of a process explains what the rings show", "[watch]") {
  const rollcall::test::Folder folder;
  folder.write("rank_0.ring", ring_of(0, 9, false));
  folder.write("rank_1.ring", ring_of(1, 8, true));
  folder.write("rank_2.ring", ring_of(2, 9, false));
  folder.write("watch.log", "rollcall watch 1\nrank 1 ended: killed by SIGKILL\n");
  const Diagnosis diagnosis = check::judge_dump(read_recordings({folder.path()}).job);
  CHECK(diagnosis.finding.kind == FindingKind::crashed_rank);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  CHECK(diagnosis.finding.headline == "the process of rank 1 is gone: killed by SIGKILL");
}

TEST_CASE("a stopped process is named as one, and how to let it go on", "[watch]") {
  const rollcall::test::Folder folder;
  folder.write("rank_0.ring", ring_of(0, 9, false));
  folder.write("rank_1.ring", ring_of(1, 8, true));
  folder.write("rank_2.ring", ring_of(2, 9, false));
  folder.write("watch.log", "rollcall watch 1\nrank 1 stopped: by a signal\n");
  const Diagnosis diagnosis = check::judge_dump(read_recordings({folder.path()}).job);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.headline == "the process of rank 1 is stopped: by a signal");
}

TEST_CASE("a record that is half written, or names no call, leaves a gap", "[watch]") {
  RingBuilder ring(0, 2);
  ring.world("0,1")
      .call(1, "all_reduce")
      .issue(1, 1, begin, begin + 1)
      .issue(7, 2, begin, begin)
      .issue(1, 3, begin, 0);
  const RankRecording recording = decode_ring(ring.bytes());
  REQUIRE(recording.dump.records.size() == 2);
  CHECK(recording.dump.records.front().gap_after);
  CHECK_FALSE(recording.dump.without_gaps);
}

TEST_CASE("a ring that cannot be one is refused with the reason", "[watch]") {
  const std::string good = ring_of(0, 3, true);
  CHECK(problem_with(good).empty());
  CHECK(problem_with("rollcall").find("not a ring") != std::string::npos);
  const auto with = [](std::size_t place, std::uint32_t value) {
    return RingBuilder(0, 3).put32(place, value).bytes();
  };
  CHECK(problem_with(with(8, 2)) == "a ring of version 2; this rollcall reads version 1");
  CHECK(problem_with(with(12, 48)).find("records of 48 bytes") != std::string::npos);
  CHECK(problem_with(with(16, 3)) == "rank 3 of 3");
  CHECK(problem_with(with(28, 3)).find("a ring of 3 records") != std::string::npos);
  CHECK(problem_with(with(32, 17)).find("does not fit") != std::string::npos);
  CHECK(problem_with(good.substr(0, good.size() - 40)).find("does not fit") != std::string::npos);
  CHECK(problem_with(RingBuilder(0, 3).describe("{nonsense").bytes()).starts_with("line 2 of its table: "));
  CHECK(problem_with(RingBuilder(0, 3).world("0,5").bytes()).find("a rank 5 in a job of 3") !=
        std::string::npos);
  CHECK(problem_with(RingBuilder(0, 3).issue(1, 1, ~std::uint64_t{0}, 0).bytes()).empty());
}

}  // namespace rollcall::traces::ring_test
