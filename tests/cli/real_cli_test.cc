// `rollcall real`, `compare` and `doctor` as users see them.

#include <fstream>
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "real/nccl/gpu_probe.h"
#include "tests/catch.h"
#include "tests/conformance/real_runs.h"
#include "tests/shell.h"
#include "tests/shipped_scenarios.h"

namespace rollcall::test::real_cli_test {
namespace {

using json = nlohmann::json;

// Returns the path of a scenario of this checkout.
std::string shipped(const std::string& name) {
  return "'" ROLLCALL_SOURCE_DIR "/" + test::example_file(name) + "'";
}

}  // namespace

TEST_CASE("a real run names the missing rank as the simulation does", "[real]") {
  if (!has_gloo()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("real " + shipped("uneven_inputs") + " --backend gloo --time-scale 0");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out,
             Contains("error[deadlock]: rank 0 never called all_reduce #5 on world (3 of 4 ranks"));
  CHECK_THAT(outcome.out, Contains("uneven_inputs.json --backend gloo --ranks 4"));
  CHECK_THAT(outcome.out, Contains("result: as expected"));
}

TEST_CASE("a call without elements that only one rank makes is as right on real ranks as simulated",
          "[real]") {
  const Shell shell;
  for (const std::string call : {R"("all_reduce": {"numel": 0})", R"("reduce": {"numel": 0, "dst": 1})"}) {
    CAPTURE(call);
    shell.write("alone.json", R"({"version": 1, "world_size": 2, "backend": "gloo", "program": [)"
                              R"({"if": "rank == 0", "do": [{)" +
                                  call + "}]}]}");
    CHECK(shell.rollcall("run alone.json").code == 0);
    if (has_gloo()) {
      CHECK(shell.rollcall("real alone.json --backend gloo").code == 0);
    }
  }
}

TEST_CASE("a message whose handle is dropped is lost on real ranks, unless its receiver came first",
          "[real]") {
  if (!has_gloo()) {
    return;
  }
  const Shell shell;
  for (const bool comes_first : {false, true}) {
    CAPTURE(comes_first);
    const auto with_delay = [](bool waits, const std::string& call) {
      return (waits ? R"({"compute": "300ms"}, )" : std::string()) + call + R"(, {"barrier": {}})";
    };
    shell.write("drops.json",
                R"({"version": 1, "world_size": 2, "backend": "gloo", "timeout": "2s", "programs": {"0": [)" +
                    with_delay(comes_first, R"({"isend": {"numel": 4, "dst": 1}})") + R"(], "1": [)" +
                    with_delay(!comes_first, R"({"recv": {"numel": 4, "src": 0}})") + "]}}");
    for (const std::string command : {"run", "real"}) {
      CAPTURE(command);
      const json report = json::parse(shell.rollcall(command + " drops.json --format json").out);
      CHECK(report.at("kind") == (comes_first ? "ok" : "drop_before_wait"));
      CHECK(report.at("culprits") == (comes_first ? json::array() : json::array({0})));
    }
    const Outcome compared = shell.rollcall("compare drops.json");
    INFO(compared.out);
    CHECK(compared.code == 0);
  }
}

TEST_CASE("a rank that comes after the others' patience is late on real ranks, too", "[real]") {
  if (!has_gloo()) {
    return;
  }
  const std::string late =
      R"({"version": 1, "name": "late", "world_size": 2, "backend": "gloo", "timeout": "500ms",
    "program": [{"if": "rank == 1", "do": [{"compute": "1500ms"}]}, )";
  const std::string message =
      R"({"if": "rank == 1", "do": [{"send": {"numel": 4, "dst": 0}}], "else": [{"recv": {"numel": 4, "src": 1}}]})";
  for (const std::string& call : {std::string(R"({"barrier": {}})"), message}) {
    INFO(call);
    const Shell shell;
    shell.write("late.json", late + call + "]}");
    const Outcome outcome = shell.rollcall("compare late.json");
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Contains("verdict   agrees            race (watchdog_timeout)"));
    CHECK_THAT(outcome.out, Contains("culprits  agrees            1\n"));
  }
}

TEST_CASE("a real run takes another number of ranks than the file says", "[real]") {
  if (!has_gloo()) {
    return;
  }
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("real " + shipped("size_mismatch") + " --backend gloo --ranks 5 --format json");
  const auto report = nlohmann::json::parse(outcome.out);
  CHECK(report.at("world_size") == 5);
  CHECK(report.at("verdict") == "mismatch");
  CHECK(report.contains("measured_time_ns"));
}

TEST_CASE("without a driver the NCCL backend says so, with the code for skipped", "[real]") {
  if (real::probe_gpus().problem.empty()) {
    return;  // there are GPUs
  }
  const Shell shell;
  for (const std::string command : {"real ", "compare "}) {
    const Outcome outcome = shell.rollcall(command + shipped("counter") + " --backend nccl");
    CHECK(outcome.code == 77);
    CHECK_THAT(outcome.err, StartsWith("rollcall: not possible here: nccl: "));
  }
  CHECK_THAT(shell.rollcall("doctor").out, Contains("--backend nccl  not possible"));
  CHECK(shell.rollcall("doctor").code == 0);
}

TEST_CASE("a Gloo that cannot be opened is the obstacle to a real run, and to nothing else", "[real]") {
  const std::string library = ROLLCALL_OPENS_GLOO;
  if (library.empty()) {
    return;  // it is not there, or linked
  }
  const Shell shell;
  shell.write(library, "this is not a library");
  const std::string elsewhere = "env LD_LIBRARY_PATH=.";
  CHECK(shell.rollcall("run " + shipped("uneven_inputs"), elsewhere).code == 0);
  const Outcome outcome = shell.rollcall("real " + shipped("uneven_inputs") + " --backend gloo", elsewhere);
  CHECK(outcome.code == 77);
  CHECK_THAT(outcome.err, Contains("not possible here: gloo: ") && Contains("libgloo0"));
  CHECK_THAT(shell.rollcall("doctor", elsewhere).out, Contains("--backend gloo  not possible"));
}

TEST_CASE("what compare recorded can be compared without real ranks", "[real]") {
  if (!has_gloo()) {
    return;
  }
  const Shell shell;
  const std::string file = "counter.result.json";
  const Outcome now = shell.rollcall("compare " + shipped("counter") + " --backend gloo --record " + file);
  CHECK(now.code == 0);
  CHECK_THAT(now.out, Contains("results   agrees"));
  CHECK_THAT(now.out, Contains("time      cannot be judged, because Gloo's times"));
  const Outcome later = shell.rollcall("compare " + shipped("counter") + " --recorded " + file);
  CHECK(later.code == 0);
  CHECK(later.out == now.out);

  auto document = nlohmann::json::parse(contents(shell.path(file)));
  CHECK(document.at("time_valid") == false);
  for (auto& call : document["ranks"][1]["calls"]) {
    if (call.at("digest") != "0000000000000000") {
      call["digest"] = "00000000deadbeef";
    }
  }
  shell.write(file, document.dump());
  const Outcome forged = shell.rollcall("compare " + shipped("counter") + " --recorded " + file);
  CHECK(forged.code == 1);
  CHECK_THAT(forged.out, Contains("results   differs"));
  CHECK_THAT(forged.out, Contains("rank 1, call "));
}

TEST_CASE("ranks that faults kill die at the same call on real ranks, however fast those are", "[real]") {
  if (!has_gloo()) {
    return;
  }
  struct Row {
    const char* name;
    const char* ranks;  // that die
    const char* at;
    const char* program;
    const char* verdict;
    const char* place;
  };
  static constexpr Row rows[] = {
      {"while it computes", "2", "25ms", R"({"repeat": 6, "do": [{"compute": "10ms"}, {"all_reduce": {}}]})",
       "deadlock (rank_crashed)", "all_reduce #2 on world, ranks 0-1,3 there, rank 2 missing"},
      {"while it waits", "1", "15ms",
       R"({"if": "rank == 0", "do": [{"compute": "30ms"}]}, {"all_reduce": {}}, {"barrier": {}})",
       "deadlock (rank_crashed)", "all_reduce #0 on world, ranks 0,2-3 there, rank 1 missing"},
      {"in a call that everybody has entered", "1", "10.01ms",
       R"({"compute": "10ms"}, {"all_reduce": {}}, {"barrier": {}})", "rank_failed (raised)", "none"},
      {"before its first call", "3", "0ms", R"({"all_reduce": {}})", "deadlock (rank_crashed)",
       "all_reduce #0 on world, ranks 0-2 there, rank 3 missing"},
      {"too late", "3", "1h", R"({"all_reduce": {}})", "ok", "none"},
  };
  const Shell shell;
  for (const Row& row : rows) {
    INFO(row.name);
    shell.write(
        "crash.json",
        fmt::format(R"({{"version": 1, "name": "{}", "world_size": 4, "backend": "gloo", "program": [{}],)"
                    R"( "faults": [{{"kind": "crash", "ranks": "{}", "at": "{}"}}]}})",
                    row.name, row.program, row.ranks, row.at));
    const Outcome outcome = shell.rollcall("compare crash.json --backend gloo --time-scale 0 --format json");
    CHECK(outcome.code == 0);
    for (const auto& claim : nlohmann::json::parse(outcome.out).at("claims")) {
      const std::string about = claim.at("about");
      if (about == "verdict" || about == "place") {
        CHECK(claim.at("judgement") == "agrees");
        CHECK(claim.at("real") == (about == "verdict" ? row.verdict : row.place));
      }
    }
  }
}

TEST_CASE("a page of recorded ranks says why it has no timeline of them", "[real]") {
  if (!has_gloo()) {
    return;
  }
  const Shell shell;
  const std::string compare = "compare " + shipped("counter");
  CHECK(shell.rollcall(compare + " --backend gloo --record c.result.json").code == 0);
  CHECK(shell.rollcall(compare + " --recorded c.result.json --report html=c.html").code == 0);
  const std::string page = contents(shell.path("c.html"));
  CHECK_THAT(page, Contains("Timeline, simulated"));
  CHECK_THAT(page, !Contains("Timeline, real"));
  CHECK_THAT(page, Contains("Results saved by --record hold facts and digests"));
}

TEST_CASE("compare refuses what is no result file", "[real]") {
  const Shell shell;
  const Outcome missing = shell.rollcall("compare " + shipped("counter") + " --recorded nowhere.json");
  CHECK(missing.code == 4);
  CHECK_THAT(missing.err, Contains("nowhere.json: cannot be read"));
  const Outcome other = shell.rollcall("compare " + shipped("counter") + " --recorded " +
                                       "'" ROLLCALL_SOURCE_DIR "/scenarios/scenario-v1.schema.json'");
  CHECK(other.code == 4);
  CHECK_THAT(other.err, Contains("not a result file"));
}

TEST_CASE("impossible wishes for a real run are refused", "[real]") {
  const Shell shell;
  CHECK(shell.rollcall("real " + shipped("counter") + " --deadline 0s").code == (has_gloo() ? 4 : 77));
  CHECK(shell.rollcall("real " + shipped("counter") + " --backend mpi").code == 4);
  CHECK(shell.rollcall("real nowhere.json").code == 4);
}

TEST_CASE("launched without a launcher is a usage error", "[real]") {
  const Shell shell;
  const Outcome outcome = shell.rollcall("real " + shipped("counter") + " --launched",
                                         "env -u RANK -u WORLD_SIZE -u SLURM_PROCID -u SLURM_NTASKS");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("no launcher has set RANK and WORLD_SIZE"));
}

}  // namespace rollcall::test::real_cli_test
