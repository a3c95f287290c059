#include "scenarios/measured/bench_table.h"

#include "scenarios/json/diagnostic.h"
#include "scenarios/measured/calibrate.h"
#include "scenarios/measured/slow.h"
#include "sim/cost/group_cost.h"
#include "sim/cost/presets.h"
#include "tests/catch.h"
#include "tests/folder.h"

namespace rollcall::measured::bench_table_test {

namespace {

constexpr const char* text_of_nccl_tests =
    R"(# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid   2001 on      node0 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   2002 on      node0 device  1 [0000:3b:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   3001 on      node1 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid   3002 on      node1 device  1 [0000:3b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    30.16    0.00    0.00       0    28.50    0.00    0.00       0
  1073741824     268435456     float     sum      -1   9000.1  119.30  178.95     N/A   9100.2  117.99  176.99     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 89.4
)";

constexpr const char* json_of_nccl_tests = R"({"version": 2, "args": ["./build/all_gather_perf", "-b", "8"],
 "nccl_version": 22809, "config": {"devices": [{"rank": 0, "hostname": "a"}, {"rank": 1, "hostname": "b"}]},
 "results": [{"size": 1024, "out_of_place": {"time": 21.5, "alg_bw": 0.1}, "in_place": {"time": 20.5}},
             {"size": 1048576, "out_of_place": {"time": 60.5}, "in_place": null}]})";

constexpr const char* lines_of_param =
    "\tCOMMS-RES-all_reduce-float32\t 4096 1024 31.2 32.0 33.5 30.0 40.1 0.131 0.245 31.2\n"
    "\tCOMMS-RES-all_reduce-float32\t 67108864 16777216 481.0 485.0 490.0 470.0 500.0 139.5 261.6 481.0\n";

const cost::Cluster h100 = cost::find_cluster("h100-2x8").cluster.value();

}  // namespace

TEST_CASE("nccl-tests' text says which collective, ranks, nodes and times", "[measured]") {
  const test::Folder folder;
  const auto tables = read_bench_tables({folder.write("out.txt", text_of_nccl_tests)});
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].op == OpKind::all_reduce);
  CHECK(tables[0].ranks == 4);
  CHECK(tables[0].nodes == 2);
  REQUIRE(tables[0].rows.size() == 2);
  CHECK(tables[0].rows[0].bytes == 8);
  CHECK(tables[0].rows[0].time == 28.5);
  CHECK(tables[0].rows[1].time == 9000.1);
}

TEST_CASE("a table without a program's name says by its bandwidths what it is of", "[measured]") {
  const test::Folder folder;
  std::string text = text_of_nccl_tests;
  text.replace(text.find("all_reduce_perf"), 15, "something");
  const auto tables = read_bench_tables({folder.write("out.txt", text)});
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].op == OpKind::all_reduce);  // from the large row; the small one does not tell
  CHECK(tables[0].rows.size() == 1);
}

TEST_CASE("nccl-tests' JSON and PARAM's lines are read, too", "[measured]") {
  const test::Folder folder;
  const auto json = read_bench_tables({folder.write("out.json", json_of_nccl_tests)});
  REQUIRE(json.size() == 1);
  CHECK(json[0].op == OpKind::all_gather);
  CHECK(json[0].nodes == 2);
  CHECK(json[0].rows[0].time == 20.5);
  CHECK(json[0].rows[1].time == 60.5);
  const auto param = read_bench_tables({folder.write("param.txt", lines_of_param)});
  REQUIRE(param.size() == 1);
  CHECK(param[0].rows[1].time == 481.0);
  CHECK(measurements_of(param, h100).front().ranks == 16);
  CHECK(measurements_of(param, h100).front().nodes == 2);
}

TEST_CASE("a file without rows is refused", "[measured]") {
  const test::Folder folder;
  CHECK_THROWS_AS(read_bench_tables({folder.write("a.txt", "hello 1 2 3\n")}), scenario::InvalidScenario);
  CHECK_THROWS_AS(read_bench_tables({folder.write("b.json", "{\"results\": [{\"size\": \"x\"}]}")}),
                  scenario::InvalidScenario);
  CHECK_THROWS_AS(read_bench_tables({folder.write("c.json", "{\"results\"")}), scenario::InvalidScenario);
}

TEST_CASE("two measured rows are met, and what lies between follows them", "[measured]") {
  const std::vector<cost::Measurement> rows{{OpKind::all_reduce, 16, 2, 8, 60},
                                            {OpKind::all_reduce, 16, 2, 1 << 30, 6000}};
  const cost::Cluster calibrated = calibrate(h100, rows);
  const cost::GroupCost before(cost::communicator_of(h100, 16, 2));
  const cost::GroupCost after(cost::communicator_of(calibrated, 16, 2));
  CHECK(after.predict({.bytes = 8})->fitted == Approx(60));
  CHECK(after.predict({.bytes = 1 << 30})->fitted == Approx(6000));
  CHECK(after.predict({.bytes = 1 << 20})->fitted > before.predict({.bytes = 1 << 20})->fitted);
  CHECK(after.predict({.bytes = 1 << 20})->time == before.predict({.bytes = 1 << 20})->time);  // NCCL's own
  const auto wide = before.predict({.bytes = 1 << 30}).value();
  const auto narrow = after.predict({.bytes = 1 << 30}).value();
  CHECK(narrow.high / narrow.low < wide.high / wide.low);
  CHECK_THAT(calibration_text(calibrated, rows), Contains("all_reduce between nodes: 2 rows"));
}

TEST_CASE("what was measured between nodes says nothing of groups in one", "[measured]") {
  const std::vector<cost::Measurement> rows{{OpKind::all_reduce, 16, 2, 8, 60},
                                            {OpKind::all_reduce, 16, 2, 1 << 30, 6000}};
  const cost::GroupCost before(cost::communicator_of(h100, 8, 1));
  const cost::GroupCost after(cost::communicator_of(calibrate(h100, rows), 8, 1));
  CHECK(after.predict({.bytes = 1 << 20})->fitted == before.predict({.bytes = 1 << 20})->fitted);
}

TEST_CASE("rows of one size are too few", "[measured]") {
  CHECK_THROWS_AS(calibrate(h100, {{OpKind::all_reduce, 16, 2, 8, 60}, {OpKind::all_reduce, 16, 2, 8, 61}}),
                  std::invalid_argument);
}

TEST_CASE("the suspect published table is called, and that of the healthy machine is not", "[slow]") {
  const std::string data = std::string(ROLLCALL_SOURCE_DIR) + "/tests/data/";
  const auto verdict = [&](const std::string& file, const char* cluster) {
    return judge_tables(read_bench_tables({data + file}), cost::find_cluster(cluster).cluster.value()).at(0);
  };
  CHECK(verdict("nccl_tables_2026/suspect_b200_sxm_2x8_gke_all_gather_nccl2.26.6.json", "b200-2x8").is_ill);
  CHECK_FALSE(verdict("nccl_tables/h200_sxm_2x8_all_gather_nccl2.26.6.json", "h200-2x8").is_ill);
}

}  // namespace rollcall::measured::bench_table_test
