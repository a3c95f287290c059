// `rollcall real`, `compare` and `doctor` as users meet them.

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "real/launch/process.h"
#include "real/nccl/gpu_probe.h"
#include "tests/conformance/real_runs.h"

namespace rollcall {
namespace {

using Catch::Contains;

struct Outcome {
  int code = -1;
  std::string text;  // standard output, then standard error
};

Outcome rollcall_cli(const std::string& arguments) {
  const std::string command =
      "cd '" ROLLCALL_SOURCE_DIR "' && '" ROLLCALL_CLI "' " + arguments + " 2>&1 </dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome;
  std::array<char, 4096> buffer;
  for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.text.append(buffer.data(), count);
  }
  outcome.code = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

}  // namespace

TEST_CASE("a real run names the missing rank as the simulation does", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const Outcome outcome = rollcall_cli("real scenarios/uneven_inputs.json --backend gloo --time-scale 0");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text,
             Contains("error[deadlock]: rank 0 never called all_reduce #5 on world (3 of 4 ranks"));
  CHECK_THAT(outcome.text,
             Contains("replay: rollcall real scenarios/uneven_inputs.json --backend gloo --ranks 4"));
  CHECK_THAT(outcome.text, Contains("result: as expected"));
}

TEST_CASE("a real run takes another number of ranks than the file says", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const Outcome outcome =
      rollcall_cli("real scenarios/size_mismatch.json --backend gloo --ranks 5 --format json");
  const auto report = nlohmann::json::parse(outcome.text);
  CHECK(report.at("world_size") == 5);
  CHECK(report.at("verdict") == "mismatch");
  CHECK(report.contains("measured_time_ns"));
}

TEST_CASE("without a driver the NCCL backend says so, with the code for skipped", "[real]") {
  if (real::probe_gpus().problem.empty()) {
    return;  // there are GPUs
  }
  for (const char* command : {"real", "compare"}) {
    const Outcome outcome = rollcall_cli(std::string(command) + " scenarios/counter.json --backend nccl");
    CHECK(outcome.code == 77);
    CHECK_THAT(outcome.text, Catch::StartsWith("rollcall: not possible here: nccl: "));
  }
  CHECK_THAT(rollcall_cli("doctor").text, Contains("--backend nccl  not possible"));
  CHECK(rollcall_cli("doctor").code == 0);
}

TEST_CASE("what compare recorded can be compared without real ranks", "[real]") {
  if (!test::has_gloo()) {
    return;
  }
  const real::PrivateFolder folder;
  const std::string file = folder.path() + "/counter.result.json";
  const Outcome now = rollcall_cli("compare scenarios/counter.json --backend gloo --record " + file);
  CHECK(now.code == 0);
  CHECK_THAT(now.text, Contains("results   agrees"));
  CHECK_THAT(now.text, Contains("time      cannot be judged, because Gloo's times"));
  const Outcome later = rollcall_cli("compare scenarios/counter.json --recorded " + file);
  CHECK(later.code == 0);
  CHECK(later.text == now.text);

  std::ifstream in(file);
  auto document = nlohmann::json::parse(in);
  CHECK(document.at("time_valid") == false);
  for (auto& call : document["ranks"][1]["calls"]) {
    if (call.at("digest") != "0000000000000000") {
      call["digest"] = "00000000deadbeef";
    }
  }
  std::ofstream(file) << document;
  const Outcome forged = rollcall_cli("compare scenarios/counter.json --recorded " + file);
  CHECK(forged.code == 1);
  CHECK_THAT(forged.text, Contains("results   differs"));
  CHECK_THAT(forged.text, Contains("rank 1, call "));
}

TEST_CASE("compare refuses what is no result file", "[real]") {
  const Outcome missing = rollcall_cli("compare scenarios/counter.json --recorded nowhere.json");
  CHECK(missing.code == 4);
  CHECK_THAT(missing.text, Contains("nowhere.json: cannot be read"));
  const Outcome other =
      rollcall_cli("compare scenarios/counter.json --recorded scenarios/scenario-v1.schema.json");
  CHECK(other.code == 4);
  CHECK_THAT(other.text, Contains("no result file"));
}

TEST_CASE("impossible wishes for a real run are refused", "[real]") {
  CHECK(rollcall_cli("real scenarios/counter.json --deadline 0s").code == (test::has_gloo() ? 4 : 77));
  CHECK(rollcall_cli("real scenarios/counter.json --backend mpi").code == 4);
  CHECK(rollcall_cli("real nowhere.json").code == 4);
}

}  // namespace rollcall
