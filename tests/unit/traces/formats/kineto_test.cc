#include "traces/formats/kineto.h"

#include <fmt/core.h>

#include "tests/unit/traces/folder.h"

namespace rollcall::traces::kineto_test {
namespace {
using test::diagnosis_of;
using test::Folder;

// A call as in a profiler's file: the host's side, and the kernel with the arguments.
std::string call(int id, const std::string& name, int numel, int seq, int issued_us, int kernel_us) {
  return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 4242, "tid": 1,
      "ts": {1}, "dur": 5, "args": {{"External id": {0}}}}},
     {{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 20,
      "ts": {2}.500, "dur": {3}.250, "args": {{"External id": {0}, "stream": 20, "Collective name": "{4}",
      "In msg nelems": {5}, "Out msg nelems": {5}, "Group size": 3, "dtype": "Float", "Process Group Name": "0",
      "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2]", "Seq": {6}}}}})",
                     id, issued_us, issued_us + 50, kernel_us, name, numel, seq);
}

std::string trace(int rank, const std::string& events) {
  return fmt::format(
      R"({{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 3,
      "pg_config": [{{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2]}}]}},
     "traceEvents": [{{"ph": "M", "name": "process_name", "pid": 1, "args": {{"name": "python"}}}}, {}],
     "traceName": "x.json"}})",
      rank, events);
}

}  // namespace

TEST_CASE("a profiler's trace is of the rank it names, and each call counts once", "[traces]") {
  const Folder folder;
  // Kernels may come before their calls, and the file may have any name.
  folder.write("host17.pt.trace.json", trace(2, call(8, "allreduce", 64, 5, 900, 100) + "," +
                                                    call(7, "_allgather_base", 32, 4, 100, 50)));
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 1);
  const check::RankDump& dump = result.job.ranks.front();
  CHECK(dump.rank == 2);
  REQUIRE(dump.records.size() == 2);
  CHECK(result.job.calls[dump.records[0].call].op == "_all_gather_base");
  CHECK(result.job.calls[dump.records[1].call].op == "all_reduce");
  CHECK(dump.records[1].collective_seq == 5);
  CHECK(dump.records[1].created_ns == 900'000);
  CHECK(dump.records[1].duration_ms == Approx(0.10025));
  CHECK(result.job.groups[dump.records[1].group].members == std::vector<Rank>{0, 1, 2});
}

TEST_CASE("traces of a healthy job show no fault, and say that they could not show a hang", "[traces]") {
  const Folder folder;
  for (int rank = 0; rank < 3; ++rank) {
    std::string events = call(1, "allreduce", 64, 1, 100, 50);
    for (int seq = 2; seq < 8 - rank; ++seq) {  // windows of different lengths
      events += "," + call(seq, "allreduce", 64, seq, 100 * seq, 50);
    }
    folder.write_packed(fmt::format("rank{}.json.gz", rank), trace(rank, events));
  }
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::no_fault);
  REQUIRE_FALSE(diagnosis.would_settle.empty());
  CHECK_THAT(diagnosis.would_settle.front(), Contains("Flight Recorder"));
}

TEST_CASE("a slow rank shows in the times of its kernels", "[traces]") {
  const Folder folder;
  for (int rank = 0; rank < 3; ++rank) {
    std::string events = call(1, "allreduce", 64, 1, 100, 50);
    for (int seq = 2; seq < 12; ++seq) {
      events += "," + call(seq, "allreduce", 64, seq, 10000 * seq, rank == 1 ? 50 : 6050);
    }
    folder.write(fmt::format("rank{}.json", rank), trace(rank, events));
  }
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::straggler);
  CHECK(diagnosis.finding.culprits == RankSet{1});
}

TEST_CASE("calls that met in a trace and disagree are found though they came back", "[traces]") {
  const Folder folder;
  for (int rank = 0; rank < 3; ++rank) {
    folder.write(fmt::format("rank{}.json", rank),
                 trace(rank, call(1, "allreduce", 64, 1, 100, 50) + "," +
                                 call(2, "allreduce", rank == 2 ? 65 : 64, 2, 200, 50)));
  }
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::size_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{2});
}

TEST_CASE("a trace that ranks were merged into is refused", "[traces]") {
  const Folder folder;
  folder.write(
      "merged_0.json",
      R"({"traceEvents": [{"ph": "X", "pid": 200000042, "name": "record_param_comms", "ts": 1, "dur": 1}]})");
  const ReadResult result = read_recordings({folder.path()});
  CHECK(result.job.ranks.empty());
  REQUIRE(result.problems.size() == 1);
  CHECK_THAT(result.problems.front().message, Contains("merged"));
}

TEST_CASE("a list of members that was cut off is looked up in the trace's table of groups", "[traces]") {
  const Folder folder;
  std::string event = call(1, "allreduce", 64, 1, 100, 50);
  event.replace(event.find("\"[0, 1, 2]\""), 11, "\"[0, 1, ...]\"");
  folder.write("rank0.json", trace(0, event));
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 1);
  const check::DumpRecord& record = result.job.ranks.front().records.front();
  CHECK(result.job.groups[record.group].members == std::vector<Rank>{0, 1, 2});
}

}  // namespace rollcall::traces::kineto_test
