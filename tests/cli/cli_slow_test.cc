// `rollcall slow` and `rollcall cluster`, from end to end.

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/shell.h"

namespace rollcall::test::cli_slow_test {
namespace {


// Ten steps on eight H100, one of which may be slow.
std::string steps(const std::string& faults) {
  return R"({"version": 1, "world_size": 8, "backend": "nccl", "cluster": "h100-8", )" + faults +
         R"("program": [
    {"repeat": 10, "do": [{"compute": "2ms"}, {"all_reduce": {"numel": 4194304}}]}]})";
}

}  // namespace

TEST_CASE("a rank that is slow in a simulated run is named from its traces, and a healthy run names none",
          "[cli][slow]") {
  const Shell shell;
  shell.write("ill.json", steps(R"("faults": [{"kind": "slow", "ranks": "3", "factor": 2}], )"));
  shell.write("healthy.json", steps(""));
  CHECK(shell.rollcall("run ill.json --trace-dir ill").code == 0);
  CHECK(shell.rollcall("run healthy.json --trace-dir healthy").code == 0);
  const Outcome ill = shell.rollcall("slow ill --format json");
  CHECK(ill.code == 1);
  const auto parts = nlohmann::json::parse(ill.out)["slow"];
  REQUIRE(parts.size() == 1);
  CHECK(parts[0]["part"] == "gpu");
  CHECK(parts[0]["name"] == "rank 3");
  const Outcome healthy = shell.rollcall("slow healthy");
  CHECK(healthy.code == 0);
  CHECK_THAT(healthy.out, StartsWith("nothing is slow: 10 calls"));
}

TEST_CASE("slow and cluster say what they cannot take, and exit with 4", "[cli][slow]") {
  const Shell shell;
  shell.write("notes.txt", "hello\n");
  CHECK(shell.rollcall("slow notes.txt").code == 4);
  CHECK_THAT(shell.rollcall("slow notes.txt").err, Contains("no rows of a benchmark"));
  CHECK(shell.rollcall("cluster from notes.txt").code == 4);
  CHECK(shell.rollcall("cluster of notes.txt").code == 4);
}

}  // namespace rollcall::test::cli_slow_test
