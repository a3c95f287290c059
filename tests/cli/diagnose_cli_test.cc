// What `diagnose` and `view` write for a real job: a page, and a trace with its waits.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/shell.h"

namespace rollcall::test::diagnose_cli_test {
namespace {
using Json = nlohmann::json;

const std::string sets = "'" ROLLCALL_SOURCE_DIR "/tests/data/flight_recorder/";

// Counts the trace's events of this phase, such as the ends of flows.
std::size_t count_events(const Json& trace, const std::string& phase) {
  const Json& events = trace.at("traceEvents");
  return static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(), [&](const Json& event) { return event.value("ph", "") == phase; }));
}

}  // namespace

TEST_CASE("diagnose writes a trace in which those who wait point back to who is missing", "[cli]") {
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("diagnose " + sets + "cpu_stuck_dataloader_4/pickle' -q --hung --trace trace.json");
  CHECK(outcome.code == 1);
  const Json trace = Json::parse(contents(shell.path("trace.json")));
  std::size_t unissued = 0;
  for (const Json& event : trace.at("traceEvents")) {
    unissued += event.value("name", "").find("not issued: all_reduce") != std::string::npos ? 1 : 0;
  }
  CHECK(unissued >= 1);
  CHECK(count_events(trace, "f") >= 3);  // one to each waiting rank
}

TEST_CASE("diagnose writes a page of the job", "[cli]") {
  const Shell shell;
  CHECK(shell.rollcall("diagnose " + sets + "size_mismatch_4/pickle' -q --report html=page.html").code == 1);
  const std::string page = contents(shell.path("page.html"));
  CHECK_THAT(page, Contains("size_mismatch") && Contains("rank 3 and the other ranks disagree"));
}

TEST_CASE(
    "diagnose shows the line of a job's file that is at hand, if it still is in the function that called",
    "[cli]") {
  const Shell shell;
  const std::string dumps =
      sets + "skipped_rank_branch_8/pickle'";  // /workspace/job/metrics.py:77 in log_metric
  const auto metrics = [](const std::string& function) {
    return std::string(70, '\n') + "def " + function +
           "(value):\n    if rank % 4 == 2:\n        return\n\n\n\n" + "    dist.all_reduce(value)\n";
  };
  shell.write("job/metrics.py", metrics("log_metric"));
  const Outcome shown = shell.rollcall("diagnose " + dumps + " --report html=page.html");
  CHECK_THAT(shown.out, Contains("  --> job/metrics.py:77\n   |\n77 |      dist.all_reduce(value)\n   |\n"));
  CHECK_THAT(contents(shell.path("page.html")), Contains("77      dist.all_reduce(value)"));
  shell.write("job/metrics.py", metrics("log_loss"));  // a different file, or changed since
  CHECK_THAT(shell.rollcall("diagnose " + dumps).out,
             Contains("  --> /workspace/job/metrics.py:77\n") && !Contains("dist.all_reduce(value)"));
}

TEST_CASE("view shows the folder of a job that hung", "[cli]") {
  const Shell shell;
  const Outcome outcome = shell.rollcall("view " + sets + "tp_dp_crossed_4/json' -o page.html");
  CHECK(outcome.code == 0);
  CHECK_THAT(contents(shell.path("page.html")), Contains("cross_group_deadlock") && Contains("mesh_tp"));
}

TEST_CASE("an archive of a job is not read as one long log, but named with the command that unpacks it",
          "[cli]") {
  const Shell shell;
  const std::string data = sets + "size_mismatch_4/pickle'";
  REQUIRE(shell
              .run("tar -czf job.tar.gz -C " + data +
                   " . && mkdir -p job/old && tar -cf job/old/job.tar -C " + data +
                   " . && printf 'PK\\003\\004 and more' > job.zip")
              .code == 0);
  const Outcome tar = shell.rollcall("diagnose job.tar.gz");
  CHECK(tar.code == 4);
  CHECK(tar.out.empty());
  CHECK_THAT(tar.err, StartsWith("rollcall: job.tar.gz: a tar archive; unpack it first (tar -xf)\n"));
  CHECK_THAT(shell.rollcall("job.zip").err, Contains("a zip archive; unpack it first (unzip)"));

  shell.run("cp -r " + data + " job/dumps");
  const Outcome folder = shell.rollcall("diagnose job");
  CHECK(folder.code == 1);
  CHECK_THAT(folder.err, Contains("not used: job/old/job.tar"));
}

TEST_CASE("diagnose takes a log without dumps", "[cli]") {
  const Shell shell;
  shell.write("job.log", "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms\n");
  const Outcome outcome = shell.rollcall("diagnose . --format json --report html=page.html");
  CHECK(outcome.code == 1);
  CHECK(Json::parse(outcome.out).at("culprits") == Json({2}));
}

}  // namespace rollcall::test::diagnose_cli_test
