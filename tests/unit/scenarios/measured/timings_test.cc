#include "scenarios/measured/timings.h"

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/measured/slow.h"
#include "tests/catch.h"
#include "tests/folder.h"

namespace rollcall::measured::timings_test {

namespace {

// A line of NCCL's Inspector plugin.
std::string inspector_line(int rank, int number, double time) {
  return fmt::format(R"({{"header": {{"id": "0x7f", "rank": {0}, "n_ranks": 4, "nnodes": 2}}, )"
                     R"("metadata": {{"hostname": "n{1}", "pid": {2}}}, "coll_perf": {{"coll": "AllReduce", )"
                     R"("coll_sn": {3}, "coll_msg_size_bytes": 1048576, "coll_exec_time_us": {4}}}}})"
                     "\n",
                     rank, rank / 2, 100 + rank, number, time);
}

std::string own_file(const std::string& rows) {
  return R"({"rollcall_timings": 1, "gpus_per_node": 2, "rows": [)" + rows + "]}";
}

Timings read(const std::string& text) {
  const test::Folder folder;
  return read_timings({folder.write("times.json", text)});
}

}  // namespace

TEST_CASE("Inspector's lines of all processes make calls, and the rank that waits least is late",
          "[measured]") {
  const test::Folder folder;
  std::vector<std::string> files;
  for (int rank = 0; rank < 4; ++rank) {
    std::string text = "not a line of it\n";
    for (int number = 0; number < 5; ++number) {
      text += inspector_line(rank, number, rank == 2 ? 60 : 360 + number);
    }
    files.push_back(folder.write(fmt::format("n{}-pid{}.log", rank / 2, 100 + rank), text));
  }
  CHECK(is_timings_file(files.front()));
  const Timings timings = read_timings(files);
  CHECK(timings.calls.size() == 5);
  CHECK(timings.hosts == std::vector<std::string>{"n0", "n1"});
  CHECK(timings.calls.front().time == 60);
  const auto found = ill_parts(timings, nullptr);
  REQUIRE(found.size() == 1);
  CHECK(found.front().name == "rank n1:102");
  CHECK(found.front().lateness > 250);
}

TEST_CASE("a call that some rank wrote nothing of is left out", "[measured]") {
  const test::Folder folder;
  const std::string file = folder.write("a.log", inspector_line(0, 1, 10) + inspector_line(1, 1, 10));
  CHECK(read_timings({file}).calls.empty());
}

TEST_CASE("a file of times has ranks on hosts", "[measured]") {
  const Timings timings =
      read(own_file(R"({"op": "all_reduce", "bytes": 8, "times_us": [5, 6, 7, 8]},)"
                    R"({"op": "all_gather", "bytes": 64, "ranks": [0, 3], "time_us": 12.5})"));
  CHECK(timings.ranks.size() == 4);
  CHECK(timings.hosts.size() == 2);
  CHECK(timings.calls[0].waited == std::vector<double>{0, 1, 2, 3});
  CHECK(timings.calls[1].time == 12.5);
}

TEST_CASE("a file of times that is wrong says where", "[measured]") {
  for (const char* row : {R"({"op": "al_reduce", "bytes": 8, "times_us": [5, 6]})",
                          R"({"op": "all_reduce", "bytes": 0, "times_us": [5, 6]})",
                          R"({"op": "all_reduce", "bytes": 8, "ranks": [1, 0], "time_us": 5})",
                          R"({"op": "all_reduce", "bytes": 8, "ranks": [0, 1, 2], "times_us": [5, 6]})",
                          R"({"op": "all_reduce", "bytes": 8, "ranks": [0, 99999999], "time_us": 5})",
                          R"({"op": "all_reduce", "bytes": 8, "times_us": [5, -6]})", R"([1])", ""}) {
    CAPTURE(row);
    CHECK_THROWS_AS(read(own_file(row)), scenario::InvalidScenario);
  }
  CHECK_THROWS_AS(read("{\"rollcall_timings\": 1, \"rows\": "), scenario::InvalidScenario);
}

TEST_CASE("records of dumps with times make calls of those that all members have", "[measured]") {
  check::JobDump job;
  job.groups.emplace_back().members = {0, 1, 2, 3};
  check::DumpCall& call = job.calls.emplace_back();
  call.op = "all_reduce";
  call.inputs = {{1024}};
  call.input_dtypes = {"Float"};
  for (Rank rank = 0; rank < 4; ++rank) {
    check::RankDump& dump = job.ranks.emplace_back();
    dump.rank = rank;
    for (int number = 1; number <= 4; ++number) {
      check::DumpRecord& record = dump.records.emplace_back();
      record.collective_seq = number;
      record.duration_ms = rank == 1 ? 0.05F : 0.35F;
      record.state = check::DumpRecord::State::completed;
    }
  }
  job.ranks[3].records.pop_back();
  const Timings timings = timings_of(job, 4);
  REQUIRE(timings.calls.size() == 3);
  CHECK(timings.calls[0].bytes == 4096);
  CHECK(ill_parts(timings, nullptr).at(0).name == "rank 1");
}

}  // namespace rollcall::measured::timings_test
