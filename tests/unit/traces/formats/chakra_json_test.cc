#include "traces/formats/chakra.h"

#include <fmt/core.h>

#include "tests/unit/traces/folder.h"

namespace rollcall::traces::chakra_json_test {
namespace {
using test::diagnosis_of;
using test::Folder;

// A message as protobuf prints it: enums by name, 64-bit numbers as text, no separator before the next one.
std::string printed(int id, int comm_type, int bytes) {
  return fmt::format(
      "{{\n  \"id\": \"{}\",\n  \"name\": \"comm}}{{\",\n  \"type\": \"COMM_COLL_NODE\",\n"
      "  \"durationMicros\": \"12\",\n  \"attr\": [\n"
      "    {{\n      \"name\": \"is_cpu_op\",\n      \"boolVal\": false\n    }},\n"
      "    {{\"name\": \"comm_type\", \"int64Val\": \"{}\"}}, {{\"name\": \"comm_size\", \"uint64Val\": "
      "\"{}\"}},\n"
      "    {{\"name\": \"pg_name\", \"stringVal\": \"1\"}}\n  ]\n}}",
      id, comm_type, bytes);
}

std::string printed_trace(const std::string& nodes) { return "{\n  \"version\": \"0.0.4\"\n}" + nodes; }

}  // namespace

TEST_CASE("Chakra traces printed as JSON are read like those in protobuf", "[traces]") {
  const Folder folder;
  folder.write("comm_group.json", R"({"1": [0, 1, 2]})");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string last = printed(3, rank == 1 ? 5 : 2, 64);  // a broadcast among all_gathers
    folder.write(fmt::format("llama.{}.json", rank), printed_trace(printed(1, 0, 4096) + last));
  }
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 3);
  const check::RankDump& dump = result.job.ranks[0];
  REQUIRE(dump.records.size() == 2);
  CHECK(result.job.calls[dump.records[0].call].op == "all_reduce");
  CHECK(result.job.calls[dump.records[0].call].inputs == std::vector<std::vector<std::int64_t>>{{4096}});
  CHECK(dump.records[0].duration_ms == Approx(0.012));
  CHECK(result.job.groups[dump.records[0].group].members == std::vector<Rank>{0, 1, 2});
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::op_type_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{1});
}

TEST_CASE("Chakra's table of a workload is read, with messages", "[traces]") {
  const Folder folder;
  const auto trace = [](int type, int source, int destination) {
    return fmt::format(R"({{"workload_graph": [
      {{"Id": 0, "Name": "w", "NodeType": 4, "is_cpu_op": true, "runtime": 7, "data_deps": []}},
      {{"Id": 1, "Name": "a", "NodeType": 7, "is_cpu_op": false, "data_deps": [0], "comm_type": 0, "comm_size": 64}},
      {{"Id": 2, "Name": "m", "NodeType": {}, "is_cpu_op": false, "data_deps": [1], "comm_size": 32,
        "comm_src": {}, "comm_dst": {}}}]}})",
                       type, source, destination);
  };
  folder.write("x.0.json", trace(5, 0, 1));
  folder.write("x.1.json", trace(6, 0, 1));
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 2);
  CHECK(result.job.ranks[0].records.size() == 2);
  CHECK(diagnosis_of(folder).finding.kind == FindingKind::no_fault);
  folder.write("x.1.json", trace(6, 2, 1));  // waits for another rank
  CHECK(read_recordings({folder.path()}).job.ranks.size() == 2);
  CHECK(check::judge_dump(read_recordings({folder.path()}).job).finding.kind != FindingKind::no_fault);
}

TEST_CASE("a damaged message among several is an error with its place", "[traces]") {
  const Folder folder;
  const std::string first = printed_trace(printed(1, 0, 4096));
  folder.write("x.0.json", first + R"({"id" 3})");
  const ReadResult result = read_recordings({folder.path("x.0.json")});
  REQUIRE(result.problems.size() == 1);
  CHECK_THAT(result.problems.front().message, Contains(fmt::format("byte {}", first.size() + 7)));
}

}  // namespace rollcall::traces::chakra_json_test
