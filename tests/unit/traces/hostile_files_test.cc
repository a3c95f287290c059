// Malicious files on a shared disk: each quickly gives an error that names the file and the byte, takes little memory,
// and does not affect the other ranks.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/values/pickle.h"
#include "tests/catch.h"
#include "tests/folder.h"
#include "traces/formats/recordings.h"
#include "traces/values/json_value.h"

namespace rollcall::traces::hostile_files_test {
namespace {
using namespace std::string_literals;

constexpr std::size_t little_memory = std::size_t{1} << 20;
const std::string header = "\x80\x02"s;

std::string little_endian(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return bytes;
}

struct Hostile {
  std::string what;
  std::string bytes;
  std::string message;  // a part of it
};

// Returns a list in a list in a list ...
std::string nested_lists(std::size_t depth) {
  return header + std::string(depth, ']') + std::string(depth - 1, 'a') + ".";
}

std::vector<Hostile> hostile_pickles() {
  return {
      {"a text longer than the file", header + "X\xff\xff\xff\x7f" + "abc", "byte 7: "},
      {"a text of 2^63 bytes", "\x80\x04\x8d" + little_endian(std::uint64_t{1} << 63, 8) + "abc",
       "byte 11: "},
      {"a negative length", header + "X\xff\xff\xff\xff" + "abc", "byte 7: "},
      {"a long with a huge count", header + "\x8a\xff" + std::string(300, '\x01') + ".", "byte 2: "},
      {"a long with four bytes of count", header + "\x8b\xff\xff\xff\x7f.", "byte 2: opcode 0x8b"},
      {"a frame longer than the file", "\x80\x04\x95" + little_endian(~std::uint64_t{0}, 8) + "N.", "byte "},
      {"a memo index far ahead", header + "Nr\xff\xff\xff\xff.", "byte 3: memo index 4294967295"},
      {"a memo that was never stored", header + "h\x05.", "byte 2: "},
      {"an import", header + "cos\nsystem\n(S'true'\ntR.", "byte 2: opcode GLOBAL would run code"},
      {"an import by the stack", "\x80\x04\x8c\x02os\x8c\x06system\x93.", "byte 14: opcode STACK_GLOBAL"},
      {"an end of nothing", header + "e.", "byte 2: "},
      {"a file that is all beginnings", header + std::string(5000, '('), "byte 5002: "},
      {"a file cut off after its first opcode", header + "}", "byte 3: "},
  };
}

}  // namespace

TEST_CASE("a hostile pickle is an error with its file and its byte, and the other rank is used",
          "[hostile]") {
  for (const Hostile& hostile : hostile_pickles()) {
    const test::Folder folder;
    folder.write("trace_0.json", R"({"version": "2.10", "pg_config": {}, "entries": []})");
    folder.write("trace_1", hostile.bytes);
    const ReadResult result = read_recordings({folder.path()});
    CAPTURE(hostile.what);
    REQUIRE(result.problems.size() == 1);
    CHECK_THAT(result.problems.front().file, Contains("trace_1"));
    CHECK_THAT(result.problems.front().message, Contains(hostile.message));
    REQUIRE(result.job.ranks.size() == 1);
    CHECK(result.job.ranks.front().rank == 0);
  }
}

TEST_CASE("lists nested a million deep need no stack", "[hostile]") {
  Arena arena(std::size_t{64} << 20);
  CHECK_NOTHROW(values::read_pickle(nested_lists(1'000'000), arena));
  const test::Folder folder;
  folder.write("trace_1", nested_lists(1'000'000));
  CHECK(read_recordings({folder.path("trace_1")}).job.ranks.empty());
}

TEST_CASE("a memo bomb stays as small as its file", "[hostile]") {
  std::string bomb = header + "(]q"s + '\0';  // each list contains the one before twice: 2^200 values
  for (int level = 1; level < 200; ++level) {
    bomb += "](h"s + static_cast<char>(level - 1) + "h"s + static_cast<char>(level - 1) + "eq"s +
            static_cast<char>(level);
  }
  Arena arena(little_memory * 2);
  CHECK_NOTHROW(values::read_pickle(bomb + "t.", arena));
}

TEST_CASE("a file that asks for more memory than it may have is told where", "[hostile]") {
  // Every list that grows abandons its old memory: 300 KB of opcodes make megabytes of items.
  std::string greedy = header + "]";
  for (int i = 0; i < 300'000; ++i) {
    greedy += i % 2 == 0 ? "N" : "a";
  }
  Arena arena(little_memory);
  try {
    values::read_pickle(greedy + ".", arena);
    FAIL("it was read");
  } catch (const BadFile& error) {
    CHECK_THAT(error.what(), Contains("too much memory"));
    CHECK(error.offset > 2);
  }
}

TEST_CASE("hostile JSON is an error with its file and its byte", "[hostile]") {
  const std::vector<Hostile> files = {
      {"brackets without end", "{\"entries\": " + std::string(1'000'000, '['),
       "byte 75: values nested more than 64"},
      {"a cut", R"({"version": "2.10", "entries": [{"record_id": 1, "pg)", "byte "},
      {"a wrong escape", R"({"version": "\x"})", "byte "},
      {"a wrong byte", "{\"version\": \"\xff\xfe\"}", "byte "},
      {"an entry that is not a dict", R"({"entries": [1]})", "entry 0 is not a dict"},
  };
  for (const Hostile& hostile : files) {
    const test::Folder folder;
    folder.write("trace_1.json", hostile.bytes);
    const ReadResult result = read_recordings({folder.path("trace_1.json")});
    CAPTURE(hostile.what);
    REQUIRE(result.problems.size() == 1);
    CHECK_THAT(result.problems.front().message, Contains(hostile.message));
    CHECK(result.job.ranks.empty());
  }
}

TEST_CASE("calls on a group that their rank does not belong to are not used", "[hostile]") {
  const test::Folder folder;
  folder.write("trace_7.json", R"({"version": "2.10",
      "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
      "entries": [{"record_id": 0, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1,
                   "profiling_name": "nccl:all_reduce", "state": "scheduled"}]})");
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.problems.size() == 1);
  CHECK_THAT(result.problems.front().message,
             Contains("1 calls are not used: rank 7 is not a member of their groups"));
  REQUIRE(result.job.ranks.size() == 1);
  CHECK(result.job.ranks.front().records.empty());
}

TEST_CASE("numbers that no recorder writes count as missing", "[hostile]") {
  const test::Folder folder;
  folder.write("trace_1.json", R"({"version": "2.10",
      "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
      "pg_status": {"0": {"last_enqueued_collective": -9223372036854775808, "last_started_collective": -1,
                          "last_completed_collective": 9223372036854775807}},
      "entries": [{"record_id": 9223372036854775807, "pg_id": 0, "process_group": ["0", "default_pg"],
        "collective_seq_id": -9223372036854775808, "p2p_seq_id": 9223372036854775807,
        "profiling_name": "nccl:all_reduce", "time_created_ns": -9223372036854775808,
        "time_discovered_completed_ns": 9223372036854775807, "timeout_ms": -5,
        "input_sizes": [[-1, 9223372036854775807]], "state": "completed", "is_p2p": false}]})");
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 1);
  const check::RankDump& dump = result.job.ranks.front();
  REQUIRE(dump.records.size() == 1);
  CHECK(dump.records.front().created_ns == 0);
  CHECK(dump.records.front().completed_ns == 0);
  CHECK(dump.records.front().collective_seq == 0);
  CHECK(dump.records.front().timeout_ms == 0);
  CHECK(result.job.calls[dump.records.front().call].inputs == std::vector<std::vector<std::int64_t>>{{0, 0}});
  REQUIRE(dump.status.size() == 1);
  CHECK(dump.status.front().enqueued == -1);
  CHECK(dump.status.front().completed == -1);
}

}  // namespace rollcall::traces::hostile_files_test
