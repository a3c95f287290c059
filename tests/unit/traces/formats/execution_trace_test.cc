#include "traces/formats/execution_trace.h"

#include <fmt/core.h>

#include "tests/unit/traces/folder.h"

namespace rollcall::traces::execution_trace_test {
namespace {

using test::diagnosis_of;
using test::Folder;

constexpr const char* groups_node =
    R"({"id": 2, "name": "## process_group:init ##", "ctrl_deps": 1, "inputs": {"values": ["[{\"pg_name\": \"0\", )"
    R"(\"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", \"ranks\": [0, 1, 2], \"group_size\": 3, )"
    R"(\"group_count\": 1}]"]}})";

std::string node(int id, const std::string& name, const std::string& values, int numel) {
  return fmt::format(R"({{"id": {0}, "name": "record_param_comms", "ctrl_deps": 1, "inputs": {{"values": {2},
      "shapes": [], "types": [], "strides": []}}, "outputs": {{"values": []}}, "attrs": [
      {{"name": "collective_name", "type": "string", "value": "{1}"}}, {{"name": "dtype", "type": "string",
      "value": "Float"}}, {{"name": "in_msg_nelems", "type": "uint64", "value": {3}}}, {{"name": "out_msg_nelems",
      "type": "uint64", "value": {3}}}, {{"name": "pg_name", "type": "string", "value": "0"}}, {{"name": "pg_desc",
      "type": "string", "value": "default_pg"}}]}})",
                     id, name, values, numel);
}

std::string file(const std::string& nodes) {
  return fmt::format(R"({{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "x", "start_ts": 1, "nodes": [
      {{"id": 1, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1}}, {}, {}], "finish_ts": 2}})",
                     nodes, groups_node);
}

// A reduction in its newer form, in which tensors come first, and in its older one.
std::string all_reduce(int id, int seq, int numel) {
  const bool is_new = id % 2 == 0;
  return node(id, "allreduce",
              is_new ? fmt::format(R"([[[5, 6, 0, {1}, 4, "cuda:0"]], [{0}, false], ["0", "default_pg"], 0])",
                                   seq, numel)
                     : fmt::format(R"([{0}, "0", 0])", seq),
              numel);
}

}  // namespace

TEST_CASE("execution traces of ranks that agree have no fault", "[traces]") {
  const Folder folder;
  for (int rank = 0; rank < 3; ++rank) {
    folder.write(
        fmt::format("et_rank_{}.json", rank),
        file(all_reduce(11, 2, 64) + "," + all_reduce(10, 1, 32) + "," + node(12, "wait", "[2]", 0)));
  }
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 3);
  const check::RankDump& dump = result.job.ranks.front();
  REQUIRE(dump.records.size() == 2);  // by id, and without the wait
  CHECK(result.job.calls[dump.records[0].call].inputs.front().front() == 32);
  CHECK(dump.records[1].collective_seq == 2);
  CHECK(diagnosis_of(folder).finding.kind == FindingKind::no_fault);
}

TEST_CASE("an execution trace that ends early is of the rank that the others would wait for", "[traces]") {
  const Folder folder;
  for (int rank = 0; rank < 3; ++rank) {
    std::string nodes = all_reduce(10, 1, 32) + "," + all_reduce(12, 2, 32);
    nodes += rank == 1 ? "" : "," + all_reduce(14, 3, 32);
    folder.write(fmt::format("et_rank_{}.json", rank), file(nodes));
  }
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  CHECK(diagnosis.finding.at->call.seq == 3);
  CHECK(diagnosis.confidence != Diagnosis::Confidence::high);
}

TEST_CASE("messages of execution traces find each other", "[traces]") {
  const Folder folder;
  folder.write("et_0.json",
               file(node(10, "send", R"([[[5, 6, 0, 64, 4, "cuda:0"]], [1, true], ["0", ""], 1])", 64)));
  folder.write("et_1.json", file(node(10, "recv", R"([[1, true], ["0", ""], 0])", 64)));
  folder.write("et_2.json", file(node(10, "wait", "[1]", 64)));
  CHECK(diagnosis_of(folder).finding.kind == FindingKind::no_fault);
  folder.write("et_1.json", file(node(10, "recv", R"([[1, true], ["0", ""], 2])", 64)));
  CHECK(diagnosis_of(folder).finding.kind != FindingKind::no_fault);
}

}  // namespace rollcall::traces::execution_trace_test
