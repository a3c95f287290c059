// Pages of all kinds: dumps, traces, two runs, simulated next to real.

#include <string>

#include "tests/catch.h"
#include "tests/shell.h"
#include "tests/shipped_scenarios.h"

namespace rollcall::test::cli_pages_test {

namespace {

std::string shipped(const std::string& name) { return ROLLCALL_SOURCE_DIR "/" + test::example_file(name); }

const std::string dumps = ROLLCALL_SOURCE_DIR "/tests/data/flight_recorder/tp_dp_crossed_4/pickle";

std::string page_of(const Shell& shell, const std::string& arguments) {
  const Outcome outcome = shell.rollcall("view -o page.html " + arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return contents(shell.path("page.html"));
}

}  // namespace

TEST_CASE("diagnose writes a page of dumps, and view makes the same", "[cli]") {
  const Shell shell;
  const Outcome outcome = shell.rollcall("diagnose " + dumps + " --report html=d.html --report json=d.json");
  CHECK(outcome.code == 1);
  const std::string page = contents(shell.path("d.html"));
  CHECK_THAT(page, Contains("cross_group_deadlock</span>: "));
  CHECK_THAT(page, Contains("Confidence:"));
  CHECK_THAT(page, Contains("Evidence"));
  CHECK_THAT(page, Contains("id=\"timeline-data\""));
  CHECK_THAT(page, Contains("Calls side by side"));
  CHECK(page_of(shell, dumps) == page);
  CHECK(contents(shell.path("d.json")) == shell.rollcall("diagnose " + dumps + " --format json").out);
}

TEST_CASE("view reads back a trace of every rank, and one file per rank", "[cli][fiber]") {
  const Shell shell;
  shell.rollcall("run " + shipped("uneven_inputs") + " -q --trace t.json --trace-dir ranks");
  shell.rollcall("run " + shipped("uneven_inputs") + " -q --trace t.json.gz");
  const std::string page = page_of(shell, "t.json");
  CHECK_THAT(page, Contains("4 ranks, "));
  CHECK_THAT(page, Contains("3 never returned"));
  CHECK_THAT(page_of(shell, "ranks"), Contains("3 never returned"));
  CHECK_THAT(page_of(shell, "t.json.gz"), Contains("3 never returned"));
}

TEST_CASE("two runs are compared, as text, as JSON and as a page", "[cli][fiber]") {
  const Shell shell;
  const std::string both = shipped("uneven_inputs") + " " + shipped("uneven_inputs_join");
  const Outcome outcome = shell.rollcall("compare " + both + " --report html=c.html");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("before and after"));
  CHECK_THAT(outcome.out, Contains("before: deadlock (missing_participant); after: ok"));
  const std::string page = contents(shell.path("c.html"));
  CHECK_THAT(page, Contains("before and after differ in verdict"));
  CHECK_THAT(page, Contains("id=\"timeline-data-2\""));
  CHECK(page_of(shell, both) == page);
  CHECK_THAT(shell.rollcall("compare " + both + " --format json").out, Contains("\"before\": \"deadlock"));
  const std::string same = shipped("counter") + " " + shipped("counter");
  CHECK(shell.rollcall("compare " + same).code == 0);
}

TEST_CASE("JSON reports are compared by what they hold", "[cli][fiber]") {
  const Shell shell;
  shell.rollcall("run " + shipped("uneven_inputs") + " --report json=before.json");
  shell.rollcall("run " + shipped("uneven_inputs_join") + " --report json=after.json");
  const Outcome outcome = shell.rollcall("compare before.json after.json");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("a JSON report has no calls"));
  CHECK_THAT(page_of(shell, "before.json after.json"), Contains("This report has no timeline"));
}

TEST_CASE("a page of real ranks beside simulated ones", "[cli][real]") {
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("compare " + shipped("counter") + " --backend gloo --report html=c.html");
  if (outcome.code == 77) {
    return;  // built without Gloo, and said so
  }
  CHECK(outcome.code == 0);
  const std::string page = contents(shell.path("c.html"));
  CHECK_THAT(page, Contains("simulated and real agree in everything that can be compared"));
  CHECK_THAT(page, Contains("id=\"timeline-data-2\""));
  CHECK(shell.rollcall("real " + shipped("counter") + " --backend gloo -q --report html=r.html").code == 0);
  CHECK_THAT(contents(shell.path("r.html")), Contains("on real ranks"));
}

TEST_CASE("paths that cannot be looked at together are refused", "[cli][fiber]") {
  const Shell shell;
  const std::string run = shipped("counter");
  CHECK_THAT(shell.rollcall("view " + dumps + " " + run).err, Contains("are of different kinds"));
  CHECK_THAT(shell.rollcall("view " + run + " " + run + " " + run).err, Contains("more were given"));
  shell.write("empty/readme.txt", "nothing");
  CHECK_THAT(shell.rollcall("view empty").err, Contains("no dumps, traces or logs of a job in empty"));
  CHECK(shell.rollcall("view nowhere.json").code == 4);
  CHECK_THAT(shell.rollcall("compare " + run + " " + run + " --ranks 2").err, Contains("need a single scenario"));
}

}  // namespace rollcall::test::cli_pages_test
