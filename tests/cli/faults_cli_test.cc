// Failures around the program: signals, system limits, full disks, pipes in place of files.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/conformance/real_runs.h"
#include "tests/shell.h"

namespace rollcall::test::faults_cli_test {

namespace {

// Runs for minutes, unless something ends it.
const char* const endless = R"({"version": 1, "name": "endless", "world_size": 64, "backend": "gloo",
  "limits": {"ops": 1000000000000}, "program": [
    {"repeat": 1000000000, "do": [{"all_reduce": {"numel": 1}}]}]})";

const char* const quick = R"({"version": 1, "name": "quick", "world_size": 2, "backend": "gloo", "program": [
    {"repeat": 400, "do": [{"all_reduce": {"numel": 1}}]}]})";

// A shell command that starts the program, sends `signal` when `condition` holds, and exits with the program's code.
std::string signaled(const std::string& arguments, const std::string& signal, const std::string& condition) {
  return "'" ROLLCALL_CLI "' " + arguments + " & pid=$!; until " + condition +
         " || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done; kill -" + signal +
         " $pid 2>/dev/null; wait $pid";
}

}  // namespace

TEST_CASE("with --progress a long run says how far it is, and a signal ends it at once", "[faults][fiber]") {
  const Shell shell;
  shell.write("endless.json", endless);
  for (const std::string signal : {"INT", "TERM", "HUP"}) {
    CAPTURE(signal);
    // A shell's background jobs ignore SIGINT unless they install a handler, which the program does.
    const std::string log = "said." + signal;
    const Outcome outcome = shell.run(
        signaled("run endless.json --progress 2>" + log, signal, "grep -q calls " + log + " 2>/dev/null"));
    CHECK(outcome.code == 2);
    const std::string said = contents(shell.path(log));
    CHECK_THAT(said,
               Contains("rollcall: running endless.json: ") && Contains(" calls, 0 of 64 ranks done, "));
    CHECK_THAT(said, Contains("rollcall: interrupted"));
  }
}

TEST_CASE("without a terminal there is no progress that nobody asked for", "[faults][fiber]") {
  const Shell shell;
  shell.write("quick.json", quick);
  CHECK(shell.rollcall("run quick.json").err.empty());
}

TEST_CASE("a signal while a file is written leaves no half of it", "[faults][fiber]") {
  const Shell shell;
  std::string longer = quick;
  longer.replace(longer.find("400"), 3, "100000");
  shell.write("long.json", longer);
  const Outcome outcome =
      shell.run(signaled("run long.json -q --trace trace.json", "TERM", "[ -e trace.json.partial ]"));
  CHECK((outcome.code == 2 || outcome.code == 0));  // it may have finished before
  CHECK_FALSE(std::filesystem::exists(shell.path("trace.json.partial")));
  CHECK(std::filesystem::exists(shell.path("trace.json")) == (outcome.code == 0));
}

TEST_CASE("a program whose standard streams are closed does what it should, and ends", "[faults][fiber]") {
  const Shell shell;
  shell.write("quick.json", quick);
  for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
    CAPTURE(closed);
    const bool can_say = closed.find(">&-") == std::string::npos || closed == "2>&-" || closed == "<&- 2>&-";
    const std::string command = "timeout 60 '" ROLLCALL_CLI "' ";
    CHECK(shell.run("(" + command + "run quick.json " + closed + ") >/dev/null").code == (can_say ? 0 : 4));
    if (has_gloo()) {
      CHECK(shell.run("(" + command + "real quick.json --backend gloo " + closed + ") >/dev/null").code ==
            (can_say ? 0 : 4));
    }
  }
}

TEST_CASE("few descriptors are an error in one line", "[faults][fiber]") {
  if (!has_gloo()) {
    return;
  }
  const Shell shell;
  shell.write("quick.json", quick);
  for (int limit = 5; limit <= 12; ++limit) {  // below 5, there is no descriptor for a library
    const Outcome outcome = shell.rollcall("real quick.json --backend gloo",
                                           "bash -c 'ulimit -n " + std::to_string(limit) + "; \"$@\"' -");
    CAPTURE(limit, outcome.err);
    CHECK((outcome.code == 0 || outcome.code == 3));
    CHECK((outcome.code == 0 || outcome.err.find("Too many open files") != std::string::npos));
    CHECK(std::ranges::count(outcome.err, '\n') <= 1);
  }
}

TEST_CASE("a file that grows beyond ulimit -f is an error and not there", "[faults][fiber]") {
  const Shell shell;
  shell.write("quick.json", quick);
  const Outcome outcome =
      shell.rollcall("run quick.json -q --trace trace.json", "bash -c 'ulimit -f 8; \"$@\"' -");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("cannot write 'trace.json': File too large"));
  CHECK_FALSE(std::filesystem::exists(shell.path("trace.json")));
  CHECK_FALSE(std::filesystem::exists(shell.path("trace.json.partial")));
}

TEST_CASE("more ranks than there is room for are refused before they run", "[faults][fiber]") {
  const Shell shell;
  shell.write("many.json", R"({"version": 1, "name": "many", "world_size": 1000000, "backend": "gloo",
    "program": [{"barrier": {}}]})");
  const Outcome outcome = shell.rollcall("run many.json", "bash -c 'ulimit -v 2000000; \"$@\"' -");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("1000000 ranks need 30.51 GiB of address space") && Contains("ulimit -v"));
}

TEST_CASE("a run stops at the memory that its scenario allows", "[faults][fiber]") {
  const Shell shell;
  std::string small = endless;
  small.replace(small.find(R"("limits": {)"), 11, R"("limits": {"memory": "1MiB", )");
  shell.write("small.json", small);
  const Outcome outcome = shell.rollcall("run small.json");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("error[limit_reached]: stopped at 1 MiB of memory"));
}

TEST_CASE("with little memory a command works or says that it cannot, and never crashes", "[faults][fiber]") {
  const Shell shell;
  shell.write("quick.json", quick);
  const std::string dumps = ROLLCALL_SOURCE_DIR "/tests/data/flight_recorder/tp_dp_crossed_4/pickle";
  for (const std::string& arguments : std::vector<std::string>{
           "run quick.json --timeline", "diagnose " + dumps, "explore quick.json", "test quick.json"}) {
    for (int mebibytes = 20; mebibytes <= 44; mebibytes += 3) {
      CAPTURE(arguments, mebibytes);
      const Outcome outcome =
          shell.rollcall(arguments, "bash -c 'ulimit -v " + std::to_string(mebibytes * 1024) + "; \"$@\"' -");
      const bool is_loaded = outcome.code != 127;  // the system could not load the libraries
      const bool lacks_room = outcome.code == 4 && outcome.err.find("of address space") != std::string::npos;
      CHECK((!is_loaded || lacks_room || outcome.code == 0 || outcome.code == 1 || outcome.code == 3));
      CHECK((outcome.code != 3 || !outcome.err.empty() || !outcome.out.empty()));
      CHECK_THAT(outcome.err, !Contains("terminate called"));
    }
  }
}

TEST_CASE("a pipe in place of a recording is refused, and nobody waits for it", "[faults]") {
  const Shell shell;
  CHECK_THAT(shell.run("mkfifo pipe && timeout 60 '" ROLLCALL_CLI "' diagnose pipe").err,
             Contains("pipe: not a regular file"));
}

TEST_CASE("a pipe with a scenario is read, and one through which nothing comes is given up",
          "[faults][fiber]") {
  const Shell shell;
  shell.write("quick.json", quick);
  CHECK(shell.run("mkfifo pipe; { sleep 1; cat quick.json; } >pipe & '" ROLLCALL_CLI "' run pipe").code == 0);
  CHECK(shell.run("'" ROLLCALL_CLI "' run - <quick.json").code == 0);
  const Outcome silent = shell.run("timeout 60 '" ROLLCALL_CLI "' run pipe");
  CHECK(silent.code == 4);
  CHECK_THAT(silent.err, Contains("pipe: error: no data has come through this pipe for 10 s"));
}

TEST_CASE("what has no end is refused at once", "[faults]") {
  const Shell shell;
  for (const std::string device : {"/dev/zero", "/dev/urandom"}) {
    const Outcome outcome = shell.rollcall("explore --merge " + device);
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.err, Contains(device + ": error: this is a device, not a file"));
  }
  shell.write("large.json", " ");
  const Outcome outcome =
      shell.run("truncate -s 2G large.json && '" ROLLCALL_CLI "' explore --merge large.json");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("large.json: error: the file is larger than 1024 MiB"));
}

}  // namespace rollcall::test::faults_cli_test
