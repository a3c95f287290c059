// Reports of `rollcall test`: what other programs read, and what remains of a run that does not finish.

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"
#include "tests/json_schema.h"
#include "tests/shell.h"

namespace rollcall::test::cli_test_reports_test {

namespace {
using nlohmann::json;
namespace fs = std::filesystem;

std::string loop(const std::string& name, int inputs) {
  return R"({ "version": 1, "name": ")" + name + R"(", "world_size": 4, "inputs": [)" +
         std::to_string(inputs) +
         R"(, 6, 6, 6],
  "program": [ { "for_each_input": "x", "do": [ { "all_reduce": { "numel": 1000, "label": "gradients" } } ] } ] })";
}

// Makes more ops than fit into a minute.
const std::string endless = R"({ "world_size": 1000, "limits": { "ops": 1000000000000 },
  "program": [ { "repeat": 1000000000, "do": [ { "all_reduce": { "numel": 1 } } ] } ] })";

void fill(const Shell& shell) {
  shell.write("scenarios/a <&> b.json", loop("markup <&\\\"'> \\u0007", 5));
  shell.write("scenarios/even.json", loop("even", 6));
  shell.write("scenarios/broken.json", "{ \"world_size\": 2,\n  \"progrm\": [] }");
}

// Counts the files in the folder that reports are written to.
std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// Runs `arguments` in the background, then the shell command `meanwhile`; returns the exit code of the former.
Outcome interrupted_run(const Shell& shell, const std::string& arguments, const std::string& meanwhile) {
  shell.write("go.sh", "'" ROLLCALL_CLI "' " + arguments + " & pid=$!\n" + meanwhile + "\nwait $pid\n");
  return shell.rollcall("--version >version.txt; sh go.sh");
}

}  // namespace

TEST_CASE("several reports are written at once, and a run is none the worse for them", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  const Outcome plain = shell.rollcall("test");
  const Outcome outcome = shell.rollcall(
      "test --report junit=j.xml --report sarif=s.sarif --report json=r.json --report html=r.html --report "
      "github");
  CHECK(outcome.code == plain.code);
  CHECK_THAT(outcome.out, Contains("::error file=scenarios/a <&> b.json,line=2,col="));
  CHECK_THAT(outcome.out, Contains("::error file=scenarios/broken.json,line=2,col=3,title="));
  CHECK_THAT(contents(shell.path("j.xml")), StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"));
  CHECK(json::parse(contents(shell.path("r.json"))).size() == 3);
  CHECK(json::parse(contents(shell.path("s.sarif")))["runs"][0]["results"].size() == 2);
  CHECK_THAT(contents(shell.path("r.html")), Contains("href=\"r_files/1.html\""));
  CHECK_THAT(contents(shell.path("r_files/1.html")), Contains("id=\"timeline-data\""));
}

TEST_CASE("JUnit is what python3-junitparser reads", "[cli][fiber]") {
  if (std::system("/usr/bin/python3 -c 'import junitparser' 2>/dev/null") != 0) {
    WARN("skipped: no Python with junitparser (Debian's package python3-junitparser)");
    return;
  }
  const Shell shell;
  fill(shell);
  shell.rollcall("test --report junit=j.xml --report html=r.html");
  shell.write(
      "read.py",
      "import junitparser\n"
      "xml = junitparser.JUnitXml.fromfile('j.xml')\n"
      "print(xml.tests, xml.failures, xml.errors)\n"
      "for suite in xml:\n"
      "  for case in suite:\n"
      "    for result in case.result:\n"
      "      print(case.classname, '|', case.name, '|', type(result).__name__, result.type, '|', "
      "result.message)\n"
      "      assert 'replay: rollcall run' in result.text or result.type == 'INVALID', result.text\n");
  const Outcome read = shell.rollcall("--version >version.txt; /usr/bin/python3 read.py");
  CHECK(read.out ==
        "3 1 1\n"
        "scenarios.a <&> b | markup <&\"'>  | Failure DEADLOCK | verdict: expected ok, got deadlock: rank 0 "
        "never called "
        "all_reduce #5 on world (3 of 4 ranks wait)\n"
        "scenarios.broken | broken.json | Error INVALID | line 2: unknown key \"progrm\"\n");
}

// Uses the published schema without its prose: github.com/oasis-tcs/sarif-spec,
// sarif-2.1/schema/sarif-schema-2.1.0.json.
TEST_CASE("SARIF keeps to the schema of its standard", "[cli][fiber]") {
  const json schema = json::parse(contents(ROLLCALL_SOURCE_DIR "/tests/data/sarif/schema-2.1.0.json"));
  const Shell shell;
  fill(shell);
  shell.rollcall("test --report sarif=several.sarif");
  shell.rollcall("run scenarios/a*.json --report sarif=failed.sarif");
  shell.rollcall("run scenarios/even.json --report sarif=fine.sarif");
  for (const char* file : {"several.sarif", "failed.sarif", "fine.sarif"}) {
    INFO(file);
    CHECK(objections(schema, json::parse(contents(shell.path(file)))) == "");
  }
  json broken = json::parse(contents(shell.path("failed.sarif")));
  broken["runs"][0]["results"][0].erase("message");
  CHECK_THAT(objections(schema, broken), Contains("message"));
}

TEST_CASE("SARIF has what code scanning needs", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  shell.rollcall("test --report sarif=s.sarif");
  const json sarif = json::parse(contents(shell.path("s.sarif")));
  CHECK(sarif["version"] == "2.1.0");
  const json& run = sarif["runs"][0];
  const json& rules = run["tool"]["driver"]["rules"];
  REQUIRE(run["results"].size() == 2);
  for (const json& result : run["results"]) {
    CHECK(rules[result["ruleIndex"].get<std::size_t>()]["id"] == result["ruleId"]);
    CHECK_FALSE(result["message"]["text"].get<std::string>().empty());
    const json& place = result["locations"][0]["physicalLocation"];
    CHECK(place["region"]["startLine"] == 2);
    CHECK_THAT(place["artifactLocation"]["uri"].get<std::string>(), StartsWith("scenarios/"));
    CHECK(result["partialFingerprints"].contains("primaryLocationLineHash"));
  }
  const json& deadlock = run["results"][0];
  CHECK(deadlock["ruleId"] == "missing_participant");
  CHECK(deadlock["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] ==
        "scenarios/a%20%3C%26%3E%20b.json");
  const json& flows = deadlock["codeFlows"][0]["threadFlows"];
  REQUIRE(flows.size() == 2);
  CHECK(flows[0]["id"] == "ranks 1-3");
  CHECK(flows[0]["locations"].size() <= 15);
}

TEST_CASE("on GitHub the job's summary has a table of what failed", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  shell.write("summary.md", "what another step wrote\n");
  shell.rollcall("test", "GITHUB_STEP_SUMMARY=summary.md");
  const std::string summary = contents(shell.path("summary.md"));
  CHECK_THAT(summary, StartsWith("what another step wrote\n## rollcall: 1 failed, 1 error, 1 passed\n"));
  CHECK_THAT(summary, Contains("| scenarios/a &lt;&amp;&gt; b.json::markup"));
  CHECK_THAT(summary, Contains("| deadlock |"));
  CHECK_THAT(summary, Contains("<details>"));
}

TEST_CASE("with a fixed date, equal runs give equal reports", "[cli][fiber]") {
  const Shell shell;
  fill(shell);
  const std::string date = "SOURCE_DATE_EPOCH=1700000000";
  shell.rollcall("test -j 1 --report junit=a.xml", date);
  shell.rollcall("test -j 3 --report junit=a2.xml", date);
  std::string again = contents(shell.path("a2.xml"));
  CHECK_THAT(again, Contains("timestamp=\"2023-11-14T22:13:20\""));
  const auto without_command = [](const std::string& xml) { return xml.substr(xml.find("<testcase")); };
  CHECK(without_command(contents(shell.path("a.xml"))) == without_command(again));
}

TEST_CASE("an interrupted run writes whole reports of what is done, and ends with 2", "[cli][fiber]") {
  const Shell shell;
  shell.write("scenarios/a.json", loop("done", 5));
  shell.write("scenarios/b.json", endless);
  for (const std::string signal : {"INT", "TERM"}) {
    fs::create_directories(shell.path("out"));
    fs::remove(shell.path("log.txt"));
    const Outcome outcome =
        interrupted_run(shell, "test -j 1 --report junit=out/j.xml --report json=out/r.json >log.txt",
                        "while ! grep -qs FAILED log.txt; do sleep 0.01; done; kill -" + signal + " $pid");
    CHECK(outcome.code == 2);
    CHECK_THAT(contents(shell.path("log.txt")), EndsWith("\ninterrupted: 1 failed, 1 not run\n"));
    CHECK(json::parse(contents(shell.path("out/r.json"))).size() == 1);
    CHECK_THAT(contents(shell.path("out/j.xml")), EndsWith("</testsuites>\n"));
    CHECK(files_in(shell.path("out")) == 2);
    fs::remove_all(shell.path("out"));
  }
}

TEST_CASE("a run that is killed leaves no report and no process", "[cli][fiber]") {
  const Shell shell;
  shell.write("scenarios/a.json", loop("done", 5));
  shell.write("scenarios/b.json", endless);
  fs::create_directories(shell.path("out"));
  const Outcome outcome = interrupted_run(
      shell, "test -j 1 --report junit=out/j.xml >log.txt",
      "while ! grep -qs FAILED log.txt; do sleep 0.01; done; sleep 0.05; child=$(pgrep -P $pid)\n"
      "kill -9 $pid; sleep 0.2; grep -q '^State:.[^ZX]' /proc/$child/status 2>/dev/null && echo alive; test "
      "-n \"$child\" || echo no child");
  CHECK(outcome.code == 128 + 9);
  CHECK(outcome.out.find("alive") == std::string::npos);
  CHECK(outcome.out.find("no child") == std::string::npos);
  CHECK(files_in(shell.path("out")) == 0);
}

TEST_CASE("on a full disk a report is absent, and the run still says what came of it", "[cli][fiber]") {
  const Shell shell;
  std::string many = loop("many", 5);
  many.insert(1, R"( "matrix": { "n": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "m": [0, 1, 2, 3] },)");
  shell.write("scenarios/many.json", many);
  fs::create_directories(shell.path("out"));
  shell.write("out/old.xml", "as it was\n");
  // A file size limit (64 blocks of 512 bytes) fails like a full disk, if its signal is ignored.
  const Outcome outcome = shell.rollcall(
      "--version >version.txt; trap '' XFSZ; ulimit -f 64; '" ROLLCALL_CLI
      "' test --report junit=out/old.xml --report json=out/r.json --report github=out/g.txt -q | tail -n 1");
  CHECK_THAT(outcome.err, Contains("cannot write 'out/old.xml': File too large"));
  CHECK_THAT(outcome.err, Contains("cannot write 'out/r.json': File too large"));
  CHECK(outcome.out == "40 failed\n");
  CHECK(contents(shell.path("out/old.xml")) == "as it was\n");
  CHECK(fs::exists(shell.path("out/g.txt")));
  CHECK(files_in(shell.path("out")) == 2);
  const Outcome device = shell.rollcall("test -q -k n=0,m=0 --report json=/dev/full");
  CHECK(device.code == 4);
  CHECK_THAT(device.err, Contains("cannot write '/dev/full': No space left on device"));
}

TEST_CASE("a report for a folder that does not exist is refused before anything runs", "[cli]") {
  const Shell shell;
  fill(shell);
  const Outcome outcome = shell.rollcall("test --report junit=nowhere/j.xml");
  CHECK(outcome.code == 4);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains("there is no directory 'nowhere' for 'nowhere/j.xml'"));
}

TEST_CASE("golden files show what a change does to the calls", "[cli][fiber]") {
  const Shell shell;
  shell.write("scenarios/a.json", loop("even", 6));
  const Outcome absent = shell.rollcall("test --golden golden");
  CHECK(absent.code == 1);
  CHECK_THAT(absent.out,
             Contains("'golden/scenarios/a.golden' does not exist; `rollcall test --update-golden`"));
  CHECK(shell.rollcall("test --golden golden --update-golden").code == 0);
  CHECK_THAT(contents(shell.path("golden/scenarios/a.golden")),
             Contains("\nranks 0-3\n  all_reduce on world (float32 x 1000, SUM) from gradients\n"));
  CHECK(shell.rollcall("test --golden golden").code == 0);
  std::string changed = loop("even", 6);
  changed.insert(changed.rfind("] }"), R"(, { "barrier": {} } )");
  shell.write("scenarios/a.json", changed);
  const Outcome differs = shell.rollcall("test --golden golden");
  CHECK(differs.code == 1);
  CHECK_THAT(differs.out,
             Contains("golden: ranks 0-3 now also call barrier on world, after call 6 (all_reduce on"));
}

}  // namespace rollcall::test::cli_test_reports_test
