// `rollcall test` as users and CI see it.

#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"
#include "tests/shell.h"

namespace rollcall::test::cli_test_command_test {

namespace {

// Four ranks; rank 0 has `inputs` inputs.
std::string loop(const std::string& name, int inputs, const std::string& more = "") {
  return R"({ "version": 1, "name": ")" + name + R"(", "world_size": 4, "inputs": [)" +
         std::to_string(inputs) +
         R"(, 6, 6, 6],
  "program": [ { "for_each_input": "x", "do": [ { "all_reduce": { "numel": 1000, "label": "gradients" } } ] } ])" +
         more + " }";
}

const std::string hangs = R"(, "expect": { "verdict": "deadlock", "culprits": [0] })";

// Fills the folder with one scenario of every kind.
void fill(const Shell& shell) {
  shell.write("scenarios/a.json", loop("even", 6, R"(, "tags": ["quick"])"));
  shell.write("scenarios/b.json", loop("uneven", 5));
  shell.write("scenarios/deep/c.json", loop("expected hang", 5, hangs));
  shell.write("scenarios/m.json", loop("sizes", 6, R"(, "matrix": { "backend": ["nccl", "gloo"] })"));
}

}  // namespace

TEST_CASE("test runs all scenarios of a folder and ends with a summary", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  const Outcome outcome = shell.rollcall("test");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, StartsWith("ok      scenarios/a.json::even\n"
                                     "FAILED  scenarios/b.json::uneven\n"
                                     "ok      scenarios/deep/c.json::expected hang\n"
                                     "ok      scenarios/m.json::sizes[backend=nccl]\n"
                                     "ok      scenarios/m.json::sizes[backend=gloo]\n"));
  CHECK_THAT(outcome.out, Contains("rank 0 never called all_reduce #5 on world (3 of 4 ranks wait)"));
  CHECK_THAT(outcome.out,
             Contains("\nFAILED scenarios/b.json::uneven - verdict: expected ok, got deadlock: rank 0 "
                      "never called all_reduce #5 on world (3 of 4 ranks wait)\n"
                      "1 failed, 4 passed\n"));
  CHECK(outcome.err.empty());
}

TEST_CASE("a success in which nothing was run says so", "[cli][fiber]") {
  const Shell shell;
  shell.write("empty.json", R"({ "version": 1, "name": "empty", "world_size": 2, "program": [] })");
  const Outcome outcome = shell.rollcall("test empty.json");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out,
             StartsWith("ok      empty.json::empty  nothing was tested: no rank does anything\n"));
}

TEST_CASE("the output of test is the same however many run at a time", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  const Outcome one = shell.rollcall("test -j 1");
  for (const std::string jobs : {"2", "7"}) {
    CHECK(shell.rollcall("test -j " + jobs).out == one.out);
  }
  CHECK(shell.rollcall("test -x -j 7").out == shell.rollcall("test -x -j 1").out);
}

TEST_CASE("cases are chosen by address, keyword and tag", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  const auto listed = [&](const std::string& arguments) {
    return shell.rollcall("test --list " + arguments).out;
  };
  CHECK(listed("scenarios/m.json") ==
        "scenarios/m.json::sizes[backend=nccl]\nscenarios/m.json::sizes[backend=gloo]\n");
  CHECK(listed("'scenarios/m.json::sizes[backend=gloo]'") == "scenarios/m.json::sizes[backend=gloo]\n");
  CHECK(listed("'scenarios/m.json::[backend=gloo]'") == "scenarios/m.json::sizes[backend=gloo]\n");
  CHECK(listed("-k 'EVEN and not uneven'") == "scenarios/a.json::even\n");
  CHECK(listed("-k 'deep or nccl'") ==
        "scenarios/deep/c.json::expected hang\nscenarios/m.json::sizes[backend=nccl]\n");
  CHECK(listed("-m quick") == "scenarios/a.json::even\n");
  CHECK(listed("scenarios/deep scenarios/a.json scenarios/deep/c.json") ==
        "scenarios/deep/c.json::expected hang\nscenarios/a.json::even\n");
}

TEST_CASE("test ends with pytest's exit codes", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  shell.write("broken/d.json", R"({ "world_size": 2, "progrm": [] })");
  CHECK(shell.rollcall("test scenarios/a.json").code == 0);
  CHECK(shell.rollcall("test scenarios/b.json").code == 1);
  const Outcome broken = shell.rollcall("test broken scenarios/b.json");
  CHECK(broken.code == 4);
  CHECK_THAT(broken.out, Contains("unknown key \"progrm\" (did you mean \"program\"?)"));
  CHECK_THAT(broken.out, Contains("1 failed, 1 error, 0 passed") || Contains("1 failed, 1 error\n"));
  CHECK(shell.rollcall("test -k nothing").code == 5);
  CHECK(shell.rollcall("test missing.json").code == 4);
  CHECK_THAT(shell.rollcall("test 'scenarios/a.json::other'").err, Contains("has no case 'other'"));
  CHECK_THAT(shell.rollcall("test -k 'a and'").err, Contains("-k: 'a and', at character 6: expected a word"));
  std::filesystem::remove_all(shell.path("scenarios"));
  CHECK(shell.rollcall("test").code == 5);
}

TEST_CASE("test stops after as many failures as it is told", "[cli][fiber]") {
  const Shell shell;
  for (const char* name : {"a", "b", "c", "d"}) {
    shell.write(std::string("scenarios/") + name + ".json", loop(name, name[0] == 'a' ? 6 : 5));
  }
  CHECK_THAT(shell.rollcall("test -x").out, EndsWith("1 failed, 1 passed, 2 not run\n"));
  CHECK_THAT(shell.rollcall("test --maxfail 2").out, EndsWith("2 failed, 1 passed, 1 not run\n"));
}

TEST_CASE("with --lf it runs what failed last time", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  CHECK(shell.rollcall("test scenarios/a.json").code == 0);
  CHECK_FALSE(std::filesystem::exists(shell.path(".rollcall")));
  shell.rollcall("test");
  CHECK(shell.rollcall("test --lf --list").out == "scenarios/b.json::uneven\n");
  // The folder may also hold the wheel that CI installs, which git has to see.
  CHECK(contents(shell.path(".rollcall/.gitignore")) ==
        "# written by `rollcall test`\n/.gitignore\n/failures/\n/last-failed.json\n");
  shell.write("scenarios/b.json", loop("uneven", 6));
  CHECK_THAT(shell.rollcall("test --lf").out, EndsWith("\n1 passed, 4 deselected\n"));
  CHECK_THAT(shell.rollcall("test --lf").out, EndsWith("\n5 passed\n"));
}

TEST_CASE("a scenario that takes too long fails, and the others run", "[cli][fiber]") {
  const Shell shell;
  shell.write("scenarios/a.json", R"({ "world_size": 1000, "limits": { "ops": 1000000000000 },
      "program": [ { "repeat": 1000000000, "do": [ { "all_reduce": { "numel": 1 } } ] } ] })");
  shell.write("scenarios/b.json", loop("even", 6));
  const Outcome outcome = shell.rollcall("test --timeout 300ms");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("FAILED scenarios/a.json::a.json - took longer than 300 ms"));
  CHECK_THAT(outcome.out, EndsWith("1 failed, 1 passed\n"));
}

TEST_CASE("a run of a file with a matrix wants one of its cases", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  const Outcome which = shell.rollcall("run scenarios/m.json");
  CHECK(which.code == 4);
  CHECK_THAT(which.err,
             Contains("this file has 2 cases; name one of them: 'scenarios/m.json::sizes[backend=nccl]'"));
  const Outcome one = shell.rollcall("run 'scenarios/m.json::[backend=gloo]' --format json");
  CHECK(one.code == 0);
  const nlohmann::json report = nlohmann::json::parse(one.out);
  CHECK(report["backend"] == "gloo");
  CHECK(report["scenario"] == "sizes[backend=gloo]");
  CHECK(report["replay"] == "rollcall run 'scenarios/m.json::[backend=gloo]' --seed 0");
}

TEST_CASE("as JSON a test run is a list of reports", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  shell.write("scenarios/d.json", R"({ "program": [] })");
  const Outcome outcome = shell.rollcall("test --format json");
  CHECK(outcome.code == 4);
  const nlohmann::json list = nlohmann::json::parse(outcome.out);
  REQUIRE(list.size() == 6);
  CHECK(list[1]["verdict"] == "deadlock");
  CHECK(list[1]["status"] == "failed");
  CHECK(list[1]["case"] == "uneven");
  CHECK(list[2]["status"] == "invalid");
  CHECK(list[2]["errors"][0]["message"] == "\"world_size\" is missing");
}

}  // namespace rollcall::test::cli_test_command_test
