#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/unit/traces/folder.h"
#include "traces/dumps/dump_decoder.h"
#include "traces/formats/rank_in_name.h"
#include "traces/formats/recordings.h"
#include "traces/values/value_access.h"

namespace rollcall::traces::flight_recorder_test {
namespace {

using rollcall::test::contents;
namespace fs = std::filesystem;
using test::Folder;

const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/flight_recorder";

std::string one_entry(const std::string& fields) {
  return R"({"version": "2.4", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
             "pg_status": {"7": {"last_enqueued_collective": "3", "last_started_collective": -1,
                                 "last_completed_collective": "2"}},
             "entries": [{"record_id": 0, "pg_id": 7, "process_group": ["0", "default_pg"],
                          "collective_seq_id": 3, "profiling_name": "nccl:all_reduce", )" +
         fields + "}]}";
}

}  // namespace

TEST_CASE("a dump keeps calls, states, times and counters", "[flight-recorder]") {
  const Folder folder;
  folder.write("trace_0.json", one_entry(R"("state": "started", "time_created_ns": 1763600000000237029,
      "input_sizes": [[4, 512]], "output_sizes": [[4, 512]], "input_dtypes": ["Float"],
      "output_dtypes": ["Float"], "timeout_ms": 600000, "retired": false, "is_p2p": false,
      "time_discovered_started_ns": 0, "duration_ms": 1.5)"));
  const ReadResult result = read_recordings({folder.path("trace_0.json")});
  CHECK(result.problems.empty());
  REQUIRE(result.job.ranks.size() == 1);
  const check::RankDump& dump = result.job.ranks.front();
  CHECK(dump.from_start);
  REQUIRE(dump.records.size() == 1);
  const check::DumpRecord& record = dump.records.front();
  CHECK(record.created_ns == 1763600000000237029);
  CHECK(record.collective_seq == 3);
  CHECK(record.state == check::DumpRecord::State::started);
  CHECK(record.duration_ms == 1.5F);
  const check::DumpCall& call = result.job.calls[record.call];
  CHECK(call.backend == "nccl");
  CHECK(call.op == "all_reduce");
  CHECK(call.inputs == std::vector<std::vector<std::int64_t>>{{4, 512}});
  const check::DumpGroup& group = result.job.groups[record.group];
  CHECK(group.members == std::vector<Rank>{0, 1});
  REQUIRE(dump.status.size() == 1);  // both spellings of its numbers
  CHECK(dump.status.front().enqueued == 3);
  CHECK(dump.status.front().started == -1);
}

TEST_CASE("a dump without entries belongs to a rank that owes nothing", "[flight-recorder]") {
  const Folder folder;
  folder.write("rank_1",
               R"({"version": "2.9", "pg_config": {"0": {"name": "0", "desc": "x", "ranks": "[0,1]"}}})");
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 1);
  CHECK(result.job.ranks.front().records.empty());
  CHECK_FALSE(result.job.ranks.front().from_start);
}

TEST_CASE("gzipped dumps are read like plain ones", "[flight-recorder]") {
  const Folder folder;
  const fs::path source = data / "size_mismatch_4/pickle";
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = "nccl_trace_rank_" + std::to_string(rank);
    folder.write_packed(name + ".gz", contents(source / name));
  }
  const ReadResult packed = read_recordings({folder.path()});
  const ReadResult plain = read_recordings({source.string()});
  CHECK(packed.problems.empty());
  REQUIRE(packed.job.ranks.size() == plain.job.ranks.size());
  CHECK(packed.job.ranks[2].records.size() == plain.job.ranks[2].records.size());
  CHECK(packed.job.calls == plain.job.calls);
}

TEST_CASE("a damaged file is named with its place, and the other ranks are used", "[flight-recorder]") {
  const Folder folder;
  const std::string whole = contents(data / "size_mismatch_4/pickle/nccl_trace_rank_1");
  folder.write("trace_1", whole);
  folder.write("trace_2", whole.substr(0, whole.size() / 2));
  folder.write("trace_3", R"({"entries": [)");
  folder.write("notes.txt", "not a dump, and no problem either");
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 1);
  CHECK(result.job.ranks.front().rank == 1);
  REQUIRE(result.problems.size() == 2);
  CHECK_THAT(result.problems[0].file, Contains("trace_2"));
  CHECK_THAT(result.problems[0].message, Contains("byte") && Contains("truncated"));
  CHECK_THAT(result.problems[1].message, Contains("byte 14") && Contains("syntax error"));
}

TEST_CASE("a dump that is empty is named, and an empty log is not", "[flight-recorder]") {
  const Folder folder;
  folder.write("trace_1", contents(data / "size_mismatch_4/pickle/nccl_trace_rank_1"));
  folder.write("trace_2", "");
  folder.write("stderr_2.log", "");
  folder.write("README", "");
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.problems.size() == 1);
  CHECK_THAT(result.problems.front().file, Contains("trace_2"));
  CHECK_THAT(result.problems.front().message, Contains("empty"));
}

TEST_CASE("every cut of a dump is an error and no crash", "[flight-recorder]") {
  const std::string whole = contents(data / "size_mismatch_4/pickle/nccl_trace_rank_1");
  const Folder folder;
  for (std::size_t size = 2; size < whole.size(); size += 41) {
    folder.write("trace_1", whole.substr(0, size));
    const ReadResult result = read_recordings({folder.path("trace_1")});
    CHECK(result.job.ranks.empty());
    CHECK(result.problems.size() == 1);
  }
}

TEST_CASE("of two dumps of one rank the one that says more is used", "[flight-recorder]") {
  const Folder folder;
  const std::string whole = contents(data / "size_mismatch_4/pickle/nccl_trace_rank_1");
  folder.write("early_1.json", R"({"version": "2.9", "pg_config": {}, "entries": []})");
  folder.write("late_1", whole);
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 1);
  CHECK_THAT(result.job.ranks.front().file, Contains("late_1"));
  REQUIRE(result.problems.size() == 1);
  CHECK_THAT(result.problems.front().message, Contains("also from rank 1"));
}

TEST_CASE("a file that is no dump is a problem only when it was asked for", "[flight-recorder]") {
  const Folder folder;
  folder.write("settings_3.json", R"({"learning_rate": 0.1})");
  CHECK(read_recordings({folder.path()}).problems.empty());
  CHECK(read_recordings({folder.path("settings_3.json")}).problems.size() == 1);
  CHECK(read_recordings({folder.path("missing_3")}).problems.size() == 1);
}

TEST_CASE("the rank is the last number of the name that is a member of the dump's groups",
          "[flight-recorder]") {
  const std::vector<check::DumpGroup> groups = {{"0", "default_pg", {0, 1, 2, 3}}, {"1", "tp", {2, 3}}};
  CHECK(rank_in_name("/tmp/nccl_trace_rank_3", groups) == 3);
  CHECK(rank_in_name("/tmp/nccl_trace_rank_3.json.gz", groups) == 3);
  CHECK(rank_in_name("/logs/7/host12_rank2", groups) == 2);
  CHECK(rank_in_name("/logs/rank_3_attempt_0.log", groups) == 3);
  CHECK(rank_in_name("/logs/nccl_trace_rank_3.2", groups) == 3);
  CHECK(rank_in_name("/logs/worker-3-of-4.log", groups) == 3);
  CHECK(rank_in_name("_dump_2.20261121", groups) == 2);  // the date is not a member
  CHECK(rank_in_name("_dump_99", groups) == 99);         // groups may be wrong, a lone number is not
  CHECK_FALSE(rank_in_name("/tmp/12/trace", groups));
}

TEST_CASE("one list used a million times is refused by the decoder", "[flight-recorder]") {
  // Entries that share one list of frames: quadratic work from a linear file.
  Arena arena(std::size_t{64} << 20);
  auto* shapes = arena.allocate_array<Node>(1);
  *shapes = {};
  const Value number = Value::of_integer(1);
  for (int i = 0; i < 5000; ++i) {
    append(arena, *shapes, &number, 1);
  }
  auto* entry = arena.allocate_array<Node>(1);
  *entry = {};
  const Value pair[] = {Value::of_text("input_sizes"), Value::of_node(Value::Kind::list, shapes)};
  append(arena, *entry, pair, 2);
  auto* entries = arena.allocate_array<Node>(1);
  *entries = {};
  const Value dict = Value::of_node(Value::Kind::dict, entry);
  for (int i = 0; i < 5000; ++i) {
    append(arena, *entries, &dict, 1);
  }
  auto* file = arena.allocate_array<Node>(1);
  *file = {};
  const Value top[] = {Value::of_text("entries"), Value::of_node(Value::Kind::list, entries)};
  append(arena, *file, top, 2);
  CHECK_THROWS_AS(decode_dump(Value::of_node(Value::Kind::dict, file), 30000), BadFile);
}

TEST_CASE("member lists are read with and without blanks", "[flight-recorder]") {
  CHECK(parse_ranks("[0, 1, 2]") == std::vector<Rank>{0, 1, 2});
  CHECK(parse_ranks("[0,1,2]") == std::vector<Rank>{0, 1, 2});
  CHECK(parse_ranks("[]") == std::vector<Rank>{});
  CHECK_FALSE(parse_ranks("[0, x]"));
  CHECK_FALSE(parse_ranks("[99999999999]"));
}

}  // namespace rollcall::traces::flight_recorder_test
