#include "scenarios/recordings/recorded_run.h"

#include <string>
#include <vector>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"

namespace rollcall::scenario::recorded_run_test {
namespace {

using check::DumpCall;
using check::DumpRecord;
using check::RankDump;

RecordedRun record(const std::string& text) { return record_run(parse_scenario(text, "test.json")); }

std::vector<std::string> ops_of(const RecordedRun& run, std::size_t rank) {
  std::vector<std::string> ops;
  for (const DumpRecord& record : run.job.ranks[rank].records) {
    ops.push_back(run.job.calls[record.call].op);
  }
  return ops;
}

}  // namespace

TEST_CASE("a batch of messages is its messages and a marker that speaks for them", "[recordings][fiber]") {
  const RecordedRun run = record(R"({"world_size": 2, "program": [
      {"batch_isend_irecv": [{"isend": {"numel": 4, "dst": "1 - rank"}}, {"irecv": {"numel": 4, "src": "1 - rank"}}],
       "as": "b"}, {"wait": "b"}, {"barrier": {}}]})");
  CHECK(ops_of(run, 0) == std::vector<std::string>{"send", "recv", "coalesced", "all_reduce_barrier"});
  const RankDump& dump = run.job.ranks[1];
  CHECK(run.job.calls[dump.records[0].call].source == 1);
  CHECK(run.job.calls[dump.records[1].call].destination == 1);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(dump.records[i].p2p_seq == 1);
    CHECK(dump.records[i].is_p2p);
  }
  CHECK(dump.records[0].state == DumpRecord::State::scheduled);  // members never have another state
  CHECK(dump.records[2].state == DumpRecord::State::completed);
  CHECK(dump.records[3].collective_seq == 1);
}

TEST_CASE("Gloo's recorder keeps collectives and no messages", "[recordings][fiber]") {
  const RecordedRun run = record(R"({"world_size": 2, "backend": "gloo", "programs": {
      "0": [{"send": {"numel": 4, "dst": 1}}, {"barrier": {}}],
      "1": [{"recv": {"numel": 4, "src": 0}}, {"barrier": {}}]}})");
  CHECK(ops_of(run, 0) == std::vector<std::string>{"barrier"});
  CHECK(ops_of(run, 1) == std::vector<std::string>{"barrier"});
}

TEST_CASE("a recorder lists the groups that its rank has used", "[recordings][fiber]") {
  const RecordedRun run =
      record(R"({"world_size": 4, "groups": {"evens": [0, 2], "odds": [1, 3]}, "program": [
      {"if": "rank % 2 == 0", "do": [{"all_reduce": {"group": "evens"}}]}, {"new_group": [2, 3], "as": "pair"},
      {"if": "rank > 1", "do": [{"all_reduce": {"group": "pair"}}]}]})");
  REQUIRE(run.job.ranks[0].groups.size() == 1);
  const check::DumpGroup& evens = run.job.groups[run.job.ranks[0].groups[0]];
  CHECK(evens.description == "evens");
  CHECK(evens.members == std::vector<Rank>{0, 2});
  CHECK(run.job.ranks[1].groups.empty());
  CHECK(run.job.ranks[2].groups.size() == 2);
  REQUIRE(run.job.ranks[3].groups.size() == 1);
  CHECK(run.job.groups[run.job.ranks[3].groups[0]].members == std::vector<Rank>{2, 3});
}

TEST_CASE("what a watchdog has given up on is retired, and what it has not is not", "[recordings][fiber]") {
  const std::string calls =
      R"({"all_reduce": {"numel": 8, "dtype": "bfloat16", "async_op": true, "as": "w"}})";
  const std::string job = R"({"world_size": 2, "communicators": "eager", )";
  const RecordedRun hang = record(job + R"("timeout": "30s", "programs": {"0": [)" + calls +
                                  R"(, {"wait": "w"}, {"synchronize": true}], "1": []}})");
  REQUIRE(hang.job.ranks[0].records.size() == 1);
  CHECK(hang.job.ranks[0].records[0].retired);
  CHECK(hang.job.ranks[0].records[0].state == DumpRecord::State::scheduled);
  CHECK(hang.job.ranks[0].records[0].timeout_ms == 30'000);
  CHECK(hang.job.ranks[0].status[0].enqueued == 1);
  CHECK(hang.job.ranks[0].status[0].completed == -1);
  CHECK(hang.job.calls[0].input_dtypes == std::vector<std::string>{"BFloat16"});

  const RecordedRun forgotten = record(job + R"("programs": {"0": [)" + calls + R"(], "1": []}})");
  REQUIRE(forgotten.job.ranks[0].records.size() == 1);
  CHECK_FALSE(forgotten.job.ranks[0].records[0].retired);
}

TEST_CASE("what a program does after its timeout is in no dump", "[recordings][fiber]") {
  const RecordedRun run = record(R"({"world_size": 2, "backend": "gloo", "timeout": "1s", "programs": {
      "0": [{"try": {"do": [{"all_reduce": {}}], "except": [{"all_reduce": {"numel": 77}}]}}], "1": []}})");
  REQUIRE(run.job.ranks[0].records.size() == 1);
  CHECK(run.job.calls[run.job.ranks[0].records[0].call].inputs[0][0] == 1);
}

TEST_CASE("lists of equal tensors are recorded as the one piece in which they travel",
          "[recordings][fiber]") {
  const RecordedRun run = record(R"({"world_size": 2, "program": [{"all_gather": {"numel": 3}},
      {"reduce_scatter_tensor": {"numel": 8}}, {"all_gather_into_tensor": {"numel": 5}}]})");
  using Shapes = std::vector<std::vector<std::int64_t>>;
  const auto& records = run.job.ranks[0].records;
  REQUIRE(records.size() == 3);
  CHECK(run.job.calls[records[0].call].outputs == Shapes{{2, 3}});
  CHECK(run.job.calls[records[1].call].op == "_reduce_scatter_base");
  CHECK(run.job.calls[records[1].call].outputs == Shapes{{4}});
  CHECK(run.job.calls[records[2].call].op == "_all_gather_base");
  CHECK(run.job.calls[records[2].call].outputs == Shapes{{10}});
}

TEST_CASE("a recording is of a run that was counted, and not of one that only asks whether orders matter",
          "[recordings][fiber]") {
  const RecordedRun run = record(R"({"world_size": 2, "backend": "gloo",
      "faults": [{"kind": "crash", "ranks": [0], "at": "3ms"}], "program": [
      {"store_add": "count", "value": 1}, {"compute": "2ms"}, {"all_reduce": {"numel": 2}}]})");
  CHECK(finding_of(run.report.verdict) == nullptr);
  CHECK_FALSE(is_alarm(check::judge_dump(run.job)));
}

TEST_CASE("a call that a rank looks at only after its timeout was over in time", "[recordings][fiber]") {
  const RecordedRun run = record(R"({"world_size": 2, "backend": "nccl", "timeout": "20ms", "program": [
      {"all_reduce": {"numel": 4}}, {"compute": "50ms"}, {"fill": "t", "value": 1}, {"item": "t"}]})");
  CHECK(finding_of(run.report.verdict) == nullptr);
  CHECK_FALSE(is_alarm(check::judge_dump(run.job)));
}

}  // namespace rollcall::scenario::recorded_run_test
