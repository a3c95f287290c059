// Reports in files, and viewing them: --report, view.

#include <string>

#include "tests/catch.h"
#include "tests/shell.h"

namespace rollcall::test::cli_report_test {

namespace {

constexpr const char* uneven =
    R"({ "version": 1, "name": "uneven", "world_size": 4, "inputs": [5, 6, 6, 6], "program": [
         { "for_each_input": "x", "do": [ { "all_reduce": "t", "numel": 1, "value": 1 } ] } ],
         "expect": { "verdict": "deadlock" } })";

}  // namespace

TEST_CASE("with --report it writes reports to files and prints as without", "[cli][fiber]") {
  const Shell shell;
  shell.write("uneven.json", uneven);
  const Outcome plain = shell.rollcall("run uneven.json");
  const Outcome outcome = shell.rollcall("run --report html=r.html --report json=r.json uneven.json");
  CHECK(outcome.code == 0);
  CHECK(outcome.out == plain.out);
  CHECK_THAT(contents(shell.path("r.html")), StartsWith("<!DOCTYPE html>"));
  CHECK_THAT(contents(shell.path("r.html")), Contains("id=\"timeline-data\""));
  CHECK(contents(shell.path("r.json")) == shell.rollcall("run uneven.json --format json").out);
  CHECK(shell.rollcall("run -q --report html=again.html uneven.json").err.empty());
  CHECK(contents(shell.path("again.html")) == contents(shell.path("r.html")));
}

TEST_CASE("a kind of report that does not exist is refused before anything runs", "[cli]") {
  const Shell shell;
  shell.write("uneven.json", uneven);
  const Outcome outcome = shell.rollcall("run uneven.json --report htm=r.html");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("unknown report kind 'htm=r.html' (did you mean 'html'?)"));
  CHECK(outcome.out.empty());
  CHECK_THAT(shell.rollcall("run uneven.json --report html").err, Contains("needs a file"));
  CHECK_THAT(shell.rollcall("run uneven.json --report html=").err, Contains("needs a file"));
}

TEST_CASE("a report is neither written over the scenario nor over another output", "[cli]") {
  const Shell shell;
  shell.write("uneven.json", uneven);
  CHECK_THAT(shell.rollcall("run uneven.json --report json=./uneven.json").err,
             Contains("--report would overwrite './uneven.json', which is an input"));
  const Outcome twice = shell.rollcall("run uneven.json --report html=r --report json=./r");
  CHECK(twice.code == 4);
  CHECK_THAT(twice.err, Contains("--report and --report both write './r'"));
  CHECK_FALSE(std::filesystem::exists(shell.path("r")));
}

TEST_CASE("a report that cannot be written is an error with its name", "[cli][fiber]") {
  const Shell shell;
  shell.write("uneven.json", uneven);
  const Outcome outcome = shell.rollcall("run uneven.json --report html=nowhere/r.html");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("nowhere/r.html"));
}

TEST_CASE("view writes a page of a scenario or of a JSON report and prints its path", "[cli][fiber]") {
  const Shell shell;
  shell.write("uneven.json", uneven);
  shell.rollcall("run uneven.json --report json=r.json");
  for (const std::string file : {"uneven.json", "r.json"}) {
    const Outcome outcome = shell.rollcall("view " + file, "TMPDIR=.");
    CHECK(outcome.code == 0);
    REQUIRE(outcome.out.ends_with(".html\n"));
    const std::string page = contents(shell.path(outcome.out.substr(0, outcome.out.size() - 1)));
    CHECK_THAT(page, Contains("deadlock</span>: rank 0 "));
  }
  CHECK(shell.rollcall("view r.json -o page.html").out == "page.html\n");
  CHECK_THAT(contents(shell.path("page.html")), Contains("This report has no timeline"));
}

TEST_CASE("view refuses what is neither a scenario nor a report", "[cli]") {
  const Shell shell;
  shell.write("broken.json", R"({ "schema_version": 1, "world_size": 4, "verdict": "lost" })");
  const Outcome outcome = shell.rollcall("view broken.json -o page.html");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("broken.json:1:52: error: /verdict: unknown verdict \"lost\""));
  CHECK_FALSE(std::filesystem::exists(shell.path("page.html")));
  CHECK(shell.rollcall("view page.html").code == 4);
}

}  // namespace rollcall::test::cli_report_test
