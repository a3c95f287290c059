// Profiler traces and execution traces that torch 1.13 wrote for jobs on Gloo with four processes, reduced to the
// calls. Neither kind has the arguments of communication, or groups.

#include <string>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "traces/formats/recordings.h"

namespace rollcall::traces::profiled_jobs_test {
namespace {

struct Answer {
  const char* folder;
  FindingKind kind;
  RankSet culprits;
  std::int64_t seq;
};

Diagnosis diagnosis_of(const std::string& folder) {
  const ReadResult input =
      read_recordings({std::string(ROLLCALL_SOURCE_DIR) + "/tests/data/torch_1_13/" + folder});
  CHECK(input.problems.empty());
  CHECK(input.job.ranks.size() == 4);
  return check::judge_dump(input.job);
}

}  // namespace

TEST_CASE("jobs that torch 1.13 traced are judged by the operators of their hosts", "[traces]") {
  const Answer answers[] = {
      {"left_out_trace", FindingKind::op_type_mismatch, {3}, 13},  // no all_gather in the third round
      {"left_out_execution_trace", FindingKind::op_type_mismatch, {3}, 13},  // the same job
      {"uneven_inputs_execution_trace", FindingKind::stuck_host, {0}, 9},    // DDP, rank 0 has an input fewer
  };
  for (const Answer& answer : answers) {
    const Diagnosis diagnosis = diagnosis_of(answer.folder);
    CAPTURE(answer.folder, diagnosis.finding.headline);
    CHECK(diagnosis.finding.kind == answer.kind);
    CHECK(diagnosis.finding.culprits == answer.culprits);
    REQUIRE(diagnosis.finding.at);
    CHECK(diagnosis.finding.at->call.seq == answer.seq);
    CHECK(diagnosis.confidence ==
          Diagnosis::Confidence::low);  // nothing says which of the groups these calls are on
  }
}

TEST_CASE("traces of torch 1.13 in which nothing is wrong are silent", "[traces]") {
  CHECK(diagnosis_of("even_inputs_trace").finding.kind == FindingKind::no_fault);
}

TEST_CASE("execution traces of torch 1.13 have sizes, dtypes and the other ends of messages", "[traces]") {
  const ReadResult input =
      read_recordings({std::string(ROLLCALL_SOURCE_DIR) + "/tests/data/torch_1_13/left_out_execution_trace"});
  REQUIRE(input.job.ranks.size() == 4);
  const auto call = [&](std::size_t rank, std::size_t index) -> const check::DumpCall& {
    return input.job.calls[input.job.ranks[rank].records[index].call];
  };
  CHECK(call(2, 2).op == "all_gather");
  CHECK(call(2, 2).inputs == std::vector<std::vector<std::int64_t>>{{8}});
  CHECK(call(2, 2).outputs == std::vector<std::vector<std::int64_t>>{{32}});
  CHECK(call(2, 2).input_dtypes == std::vector<std::string>{"float"});
  CHECK(call(0, 4).op == "send");
  CHECK(call(0, 4).source == 0);
  CHECK(call(0, 4).destination == 1);
  CHECK(call(1, 4).op == "recv");
  CHECK(call(1, 4).source == 0);
}

}  // namespace rollcall::traces::profiled_jobs_test
