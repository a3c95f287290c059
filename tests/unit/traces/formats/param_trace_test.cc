#include "traces/formats/param_trace.h"

#include <fmt/core.h>

#include "tests/unit/traces/folder.h"

namespace rollcall::traces::param_trace_test {
namespace {

using test::diagnosis_of;
using test::Folder;

std::string comms(const std::string& name, int numel, const std::string& more = "") {
  return fmt::format(R"({{"comms": "{}", "req": 3, "in_msg_size": {}, "out_msg_size": {}, "dtype": "float32",
      "pg_id": 1, "world_size": 3{}}})",
                     name, numel, numel, more);
}

constexpr const char* init = R"({"comms": "init", "pg_id": 1, "global_ranks": [2, 3, 4], "world_size": 3})";
constexpr const char* gemm = R"({"compute": "gemm", "mm_dim": 512, "dtype": "float32", "count": 1})";

}  // namespace

TEST_CASE("PARAM traces are read with the groups they set up", "[traces]") {
  const Folder folder;
  for (int rank = 2; rank < 5; ++rank) {
    folder.write(fmt::format("rank{}.json", rank),
                 fmt::format("[{}, {}, {}, {}]", init, comms("all_reduce", 64), gemm,
                             comms("all_to_allv", 10 * rank, R"(, "in_split": [1, 2, 3])")));
  }
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 3);
  CHECK(result.job.groups[result.job.ranks[0].records[0].group].members == std::vector<Rank>{2, 3, 4});
  CHECK(result.job.ranks[0].records.size() == 2);
  CHECK(diagnosis_of(folder).finding.kind ==
        FindingKind::no_fault);  // exchanged sizes may differ from rank to rank
}

TEST_CASE("a PARAM trace with another call names its rank", "[traces]") {
  const Folder folder;
  for (int rank = 2; rank < 5; ++rank) {
    folder.write(fmt::format("rank{}.json", rank),
                 fmt::format("[{}, {}, {}, {}]", init, comms("all_reduce", 64),
                             comms(rank == 4 ? "broadcast" : "all_reduce", 8), comms("all_reduce", 64)));
  }
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::op_type_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{4});
}

TEST_CASE("the ends of PARAM's messages are global ranks", "[traces]") {
  const Folder folder;
  folder.write("rank2.json",
               fmt::format("[{}, {}]", init, comms("send", 64, R"(, "src_rank": 2, "dst_rank": 4)")));
  folder.write("rank3.json", fmt::format("[{}]", init));
  folder.write("rank4.json",
               fmt::format("[{}, {}]", init, comms("recv", 64, R"(, "src_rank": 2, "dst_rank": 4)")));
  CHECK(diagnosis_of(folder).finding.kind == FindingKind::no_fault);
}

}  // namespace rollcall::traces::param_trace_test
