// The commands that read and write recordings, as users see them.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/catch.h"
#include "tests/shell.h"
#include "tests/shipped_scenarios.h"

namespace rollcall::test::cli_recordings_test {
namespace {}  // namespace

TEST_CASE("a hang goes to dumps, from dumps to a verdict, and from dumps to a scenario", "[cli]") {
  const Shell shell;
  const std::string hang = "'" ROLLCALL_SOURCE_DIR "/scenarios/examples/hangs/crash_while_others_wait.json'";
  const Outcome exported = shell.rollcall("export --flight-recorder dumps " + hang);
  CHECK(exported.code == 0);
  CHECK_THAT(exported.err, Contains("wrote 3 Flight Recorder dumps to dumps; rank 2 left none"));
  CHECK_FALSE(std::filesystem::exists(shell.path("dumps/comm_lib_trace_rank_2")));
  CHECK_THAT(shell.rollcall("diagnose dumps -q").out, Contains("error[crashed_rank]: rank 2"));
  const Outcome again = shell.rollcall("export --flight-recorder dumps " + hang);
  CHECK(again.code == 4);
  CHECK_THAT(again.err, Contains("already holds dumps"));
  CHECK(shell.rollcall("import dumps -o imported.json").code == 0);
  const Outcome run = shell.rollcall("run imported.json");
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Contains("error[deadlock]") && Contains("rank 2") && Contains("result: as expected"));
}

TEST_CASE("Python loads exported dumps, with the keys and types that torchfrtrace relies on", "[cli]") {
  const Shell shell;
  if (std::system("command -v python3 >/dev/null") != 0) {
    WARN("skipped: no Python");
    return;
  }
  int count = 0;
  for (const char* name : {"pipeline_send_send", "crossed_groups", "mesh", "crash_while_others_wait"}) {
    const std::string folder = "dumps" + std::to_string(count++);
    const std::string scenario = "'" ROLLCALL_SOURCE_DIR "/" + test::example_file(name) + "'";
    REQUIRE(shell.rollcall("export --flight-recorder " + folder + " " + scenario).code == 0);
    const std::string script = "python3 '" ROLLCALL_SOURCE_DIR "/tests/load_dumps.py' '";
    CAPTURE(name);
    CHECK(std::system((script + shell.path(folder).string() + "' >/dev/null").c_str()) == 0);
  }
}

TEST_CASE("export and import say how they are called", "[cli]") {
  const Shell shell;
  const std::string file = "'" ROLLCALL_SOURCE_DIR "/scenarios/uneven_inputs.json'";
  CHECK_THAT(shell.rollcall("export " + file).err, Contains("export --flight-recorder DIR FILE"));
  CHECK(shell.rollcall("export flight-recorder " + file + " -o dumps --encoding json").code == 0);
  CHECK(std::filesystem::exists(shell.path("dumps/comm_lib_trace_rank_0.json")));
  CHECK(shell.rollcall("import flight-recorder dumps -o hang.json").code == 0);
  CHECK_THAT(shell.rollcall("import hang").err, Contains("import hang FILE"));
  CHECK(shell.rollcall("import nowhere").code == 4);
  std::filesystem::create_directories(shell.path("empty"));
  CHECK(shell.rollcall("import empty").code == 5);
}

TEST_CASE("only when nothing is left of the dumps, they are an error", "[cli]") {
  const Shell shell;
  shell.write("dumps/trace_0.json", R"({"version": "2.10", "pg_config": {}, "entries": []})");
  shell.write("dumps/trace_1",
              "\x80\x02"
              "cos\nsystem\n.");
  CHECK(shell.rollcall("diagnose dumps").code == 6);  // they hold no call
  std::filesystem::remove(shell.path("dumps/trace_0.json"));
  const Outcome nothing = shell.rollcall("diagnose dumps");
  CHECK(nothing.code == 4);
  CHECK_THAT(nothing.err, Contains("trace_1: byte 2: opcode GLOBAL would run code"));
}

TEST_CASE("a progress bar is for terminals only", "[cli]") {
  const Shell shell;
  const std::string set = "'" ROLLCALL_SOURCE_DIR "/tests/data/flight_recorder/size_mismatch_8/pickle'";
  CHECK(shell.rollcall("diagnose " + set + " -q").err.empty());
}

}  // namespace rollcall::test::cli_recordings_test
