// The program as users and scripts see it: arguments in; text, exit code and files out.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <unistd.h>

#include "tests/catch.h"
#include "tests/shell.h"

namespace rollcall::test::cli_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Four ranks, one of which has one input less; `expect` is appended.
std::string uneven(const std::string& expect = "") {
  return R"({ "version": 1, "name": "uneven", "world_size": 4, "inputs": [5, 6, 6, 6], "program": [
              { "for_each_input": "x", "do": [ { "all_reduce": "t", "numel": 1, "value": 1 } ] } ])" +
         (expect.empty() ? "" : ", \"expect\": " + expect) + " }";
}

constexpr const char* hello =
    R"({ "version": 1, "name": "hello", "world_size": 2, "program": [ { "print": "hello" } ] })";

}  // namespace

TEST_CASE("a scenario that ends as expected exits with 0", "[cli][fiber]") {
  const Shell shell;
  shell.write("hello.json", hello);
  const Outcome outcome = shell.rollcall("run hello.json");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, StartsWith("ok: hello: 2 ranks finished"));
  CHECK_THAT(outcome.out, Contains("  ranks 0-1  hello\n"));
  CHECK(outcome.err.empty());
}

TEST_CASE("a deadlock nobody expected exits with 1 and says so", "[cli][fiber]") {
  const Shell shell;
  shell.write("uneven.json", uneven());
  const Outcome outcome = shell.rollcall("run uneven.json");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, StartsWith("error[deadlock]: rank 0 "));
  CHECK_THAT(outcome.out, Contains("all_reduce #5"));
  CHECK_THAT(outcome.out, Contains("ranks 1-3  waiting in all_reduce #5"));
  CHECK_THAT(outcome.out, Contains("uneven.json:2:"));
  CHECK_THAT(outcome.out, Contains("replay: rollcall run uneven.json --seed 0\n"));
  CHECK_THAT(outcome.out, Contains("result: not as expected\n"));
}

TEST_CASE("a deadlock that was expected exits with 0 and says so", "[cli][fiber]") {
  const Shell shell;
  shell.write("uneven.json",
              uneven(R"({ "verdict": "deadlock", "culprits": [0], "at": { "group": "world", "seq": 5 } })"));
  const Outcome outcome = shell.rollcall("run uneven.json");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, StartsWith("error[deadlock]"));
  CHECK_THAT(outcome.out, EndsWith("result: as expected\n"));
}

TEST_CASE("with --format json it prints the report format's object", "[cli][fiber]") {
  const Shell shell;
  shell.write("uneven.json", uneven());
  const Outcome outcome = shell.rollcall("run uneven.json --format json --seed 7");
  CHECK(outcome.code == 1);
  const Json report = Json::parse(outcome.out);
  CHECK(report["schema_version"] == 1);
  CHECK(report["seed"] == 7);
  CHECK(report["verdict"] == "deadlock");
  CHECK(report["culprits"] == Json::array({0}));
  CHECK(report["at"]["group"] == "world");
  CHECK(report["at"]["seq"] == 5);
  CHECK(report["at"]["waiting"] == Json::array({1, 2, 3}));
  CHECK(report["expected"] == false);
}

TEST_CASE("two runs print the same bytes", "[cli][fiber]") {
  const Shell shell;
  shell.write("uneven.json", uneven());
  for (const std::string format : {"text", "json"}) {
    const std::string arguments = "run uneven.json -v --trace t.json --format " + format;
    const Outcome first = shell.rollcall(arguments);
    const std::string trace = contents(shell.path("t.json"));
    CHECK(shell.rollcall(arguments).out == first.out);
    CHECK(contents(shell.path("t.json")) == trace);
  }
}

TEST_CASE("one run writes several traces", "[cli][fiber]") {
  const Shell shell;
  shell.write("hello.json", hello);
  CHECK(shell.rollcall("run hello.json --trace a.json --trace b.pftrace").code == 0);
  CHECK_THAT(contents(shell.path("a.json")), Contains("traceEvents"));
  CHECK_FALSE(contents(shell.path("b.pftrace")).empty());
}

TEST_CASE("with --trace it writes a trace that parses, with a slice for every call", "[cli][fiber]") {
  const Shell shell;
  shell.write("uneven.json", uneven());
  const Outcome outcome = shell.rollcall("run uneven.json --trace out.json");
  CHECK_THAT(outcome.err, Contains("out.json"));
  std::size_t slices = 0;
  std::size_t open = 0;
  const Json trace = Json::parse(contents(shell.path("out.json")));
  for (const Json& event : trace["traceEvents"]) {
    slices += event["ph"] == "X" && event["cat"] != "verdict";  // and one for what rank 0 did instead
    open += event["ph"] == "B";
  }
  CHECK(slices == 4 * 5);
  CHECK(open == 3);
}

TEST_CASE("with -q it prints one line, with -o it puts it into a file", "[cli][fiber]") {
  const Shell shell;
  shell.write("hello.json", hello);
  const Outcome outcome = shell.rollcall("run hello.json -q -o report.txt");
  CHECK(outcome.code == 0);
  CHECK(outcome.out.empty());
  const std::string report = contents(shell.path("report.txt"));
  CHECK_THAT(report, StartsWith("ok: hello"));
  CHECK(std::count(report.begin(), report.end(), '\n') == 1);
}

TEST_CASE("color follows --color and the environment", "[cli][fiber]") {
  const Shell shell;
  shell.write("hello.json", hello);
  const auto is_colored = [&shell](const std::string& options, const std::string& environment = "") {
    return shell.rollcall("run hello.json " + options, environment).out.find('\x1b') != std::string::npos;
  };
  CHECK_FALSE(is_colored(""));  // a pipe
  CHECK(is_colored("--color always"));
  CHECK(is_colored("--color=always", "NO_COLOR=1"));
  CHECK(is_colored("", "CLICOLOR_FORCE=1"));
  CHECK_FALSE(is_colored("", "CLICOLOR_FORCE=1 NO_COLOR=1"));
  CHECK_FALSE(is_colored("", "CLICOLOR_FORCE=1 TERM=dumb"));
  CHECK_FALSE(is_colored("--color never", "CLICOLOR_FORCE=1"));
}

TEST_CASE("an interrupt exits with 2", "[cli][fiber]") {
  const Shell shell;
  shell.write(
      "long.json",
      R"({ "version": 1, "name": "long", "world_size": 2, "limits": { "ops": 1000000000 }, "program": [
                    { "repeat": 1000000000, "do": [ { "all_reduce": "t", "numel": 1 } ] } ] })");
  const Outcome outcome = shell.rollcall("run long.json", "timeout --preserve-status -s INT 1");
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains("interrupted"));
}

TEST_CASE("every misuse of the command line exits with 4 and a line on standard error", "[cli]") {
  const Shell shell;
  shell.write("hello.json", hello);
  const std::pair<const char*, const char*> cases[] = {
      {"", "rollcall --help"},
      {"-x", "unknown option '-x'"},
      {"run -z hello.json", "unknown option '-z' for 'run'"},
      {"run hello.json -o t.json --trace ./t.json", "-o and --trace both write './t.json'"},
      {"rnu hello.json", "unknown command 'rnu' (did you mean 'run'?)"},
      {"train.py", "'train.py' is not a command, and there is no such file"},
      {"--nonsense", "--nonsense"},
      {"run", "FILE"},
      {"run hello.json other.json", "other.json"},
      {"run hello.json --fromat json", "unknown option '--fromat' for 'run' (did you mean '--format'?)"},
      {"run hello.json --format xml", "xml"},
      {"run hello.json --color sometimes", "sometimes"},
      {"run hello.json --seed -1", "--seed"},
      {"run hello.json --seed x", "--seed"},
      {"run hello.json --seed 99999999999999999999", "--seed"},
      {"run hello.json -q -v", "excludes"},
      {"run hello.json --seed", "--seed needs a value"},
      {"run hello.json --format json --format text", "--format is given more than once"},
      {"test --jobs 0", "'0' is not an integer between 1 and 1024"},
      {"real hello.json --ranks -3", "'-3' is not an integer"},
      {"real hello.json --time-scale -1", "'-1' is not a non-negative number"},
      {"explain dedlock", "(did you mean 'deadlock'?)"},
      {"explain xyzzy", "xyzzy"},
      {"run hello.json -o hello.json", "would overwrite"},
      {"run hello.json --trace ./hello.json", "would overwrite"},
      {"run hello.json --trace trace.txt", "'trace.txt' names no format; end it with .json"},
  };
  for (const auto& [arguments, message] : cases) {
    CAPTURE(arguments);
    const Outcome outcome = shell.rollcall(arguments);
    CHECK(outcome.code == 4);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Contains(message));
  }
  CHECK(contents(shell.path("hello.json")) == hello);
}

TEST_CASE("a file that is no scenario exits with 4 and names the file", "[cli]") {
  const Shell shell;
  shell.write("empty.json", "");
  shell.write("folder/inside.txt", "");
  shell.write("latin1.json", "{ \"version\": 1, \"name\": \"caf\xe9\" }");
  shell.write("brackets.json", std::string(10'000'000, '['));
  shell.write("half.json", R"({ "version": 1, )");
  shell.write("list.json", "[]");
  shell.write("typo.json", R"({ "version": 1, "name": "x", "worldsize": 4, "program": [] })");
  shell.write("no_ranks.json", R"({ "version": 1, "name": "x", "world_size": 0, "program": [] })");
  shell.write("too_many.json",
              R"({ "version": 1, "name": "x", "world_size": 99999999999999999999, "program": [] })");
  for (const std::string file : {"missing.json", "empty.json", "folder", "latin1.json", "brackets.json",
                                 "half.json", "list.json", "typo.json", "no_ranks.json", "too_many.json"}) {
    CAPTURE(file);
    const Outcome outcome = shell.rollcall("run " + file);
    CHECK(outcome.code == 4);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Contains(file));
    CHECK_THAT(outcome.err, Contains("error"));
    CHECK(outcome.err.size() < 20'000);
  }
}

TEST_CASE("with --format json, errors are an object on standard output", "[cli]") {
  const Shell shell;
  shell.write("typo.json", "{ \"version\": 1, \"name\": \"x\",\n  \"world_siez\": 4, \"program\": [] }");
  const Outcome outcome = shell.rollcall("run typo.json --format json");
  CHECK(outcome.code == 4);
  const Json object = Json::parse(outcome.out);
  CHECK(object["schema_version"] == 1);
  REQUIRE_FALSE(object["errors"].empty());
  bool found = false;
  for (const Json& error : object["errors"]) {
    CHECK(error["file"] == "typo.json");
    CHECK(error["message"].is_string());
    CHECK(error["pointer"].is_string());
    found = found || (error.value("line", 0) == 2 && error.value("suggestion", "") == "world_size");
  }
  CHECK(found);
}

TEST_CASE("what cannot be written is an error with a reason", "[cli][fiber]") {
  const Shell shell;
  shell.write("hello.json", hello);
  const auto fails = [&shell](const std::string& arguments, const std::string& reason) {
    CAPTURE(arguments);
    const Outcome outcome = shell.rollcall(arguments);
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.err, Contains("cannot write") && Contains(reason));
  };
  fails("run hello.json -o no/such/folder.txt", "No such file or directory");
  fails("run hello.json --trace no/such/folder.json", "No such file or directory");
  fails("run hello.json -o .", "Is a directory");
  fails("run hello.json > /dev/full", "No space left on device");
  fails("run hello.json -o /dev/full", "No space left on device");
  fails("explain >&-", "Bad file descriptor");
  fails("--help > /dev/full", "No space left on device");
}

TEST_CASE("a reader that goes away is an error, not a silent end", "[cli]") {
  constexpr int write_end = 9;  // a digit: POSIX shells redirect no higher descriptor
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  REQUIRE(::dup2(ends[1], write_end) == write_end);
  ::close(ends[1]);
  const Shell shell;
  const Outcome outcome = shell.rollcall("explain >&9");
  ::close(write_end);
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("Broken pipe"));
}

TEST_CASE("exit codes do not depend on who reads standard error", "[cli][fiber]") {
  const Shell shell;
  shell.write("hello.json", hello);
  for (const std::string nobody : {" 2>&-", " 2>/dev/full"}) {
    CAPTURE(nobody);
    CHECK(shell.rollcall("run missing.json" + nobody).code == 4);
    CHECK(shell.rollcall("run hello.json --nonsense" + nobody).code == 4);
    CHECK(shell.rollcall("list missing.json" + nobody).code == 4);
    CHECK(shell.rollcall("run hello.json --trace t.json" + nobody).code == 0);
  }
}

TEST_CASE("help and version go to standard output and exit with 0", "[cli]") {
  const Shell shell;
  const Outcome help = shell.rollcall("--help");
  CHECK(help.code == 0);
  for (const char* command : {"run", "list", "schema", "explain"}) {
    CHECK_THAT(help.out, Contains(command));
    CHECK(shell.rollcall(std::string(command) + " --help").code == 0);
  }
  CHECK_THAT(shell.rollcall("run --help").out, Contains("--trace"));
  const Outcome version = shell.rollcall("--version");
  CHECK(version.code == 0);
  CHECK_THAT(version.out, StartsWith("rollcall "));
}

TEST_CASE("explain tells of one word or lists all", "[cli]") {
  const Shell shell;
  const Outcome all = shell.rollcall("explain");
  CHECK(all.code == 0);
  CHECK_THAT(all.out, Contains("\n  missing_participant  "));
  const Outcome one = shell.rollcall("explain missing_participant");
  CHECK(one.code == 0);
  CHECK_THAT(one.out, StartsWith("missing_participant: ") && Contains("= help: "));
  const Json json = Json::parse(shell.rollcall("explain join_hook_mismatch --format json").out);
  CHECK(json["word"] == "join_hook_mismatch");
  CHECK(json["verdicts"] == Json::array({"deadlock", "mismatch", "wrong_result"}));
}

TEST_CASE("schema prints a JSON Schema of draft 7", "[cli]") {
  const Shell shell;
  const Outcome outcome = shell.rollcall("schema");
  CHECK(outcome.code == 0);
  const Json schema = Json::parse(outcome.out);
  CHECK_THAT(schema["$schema"].get<std::string>(), Contains("draft-07"));
  CHECK(schema["properties"].contains("world_size"));
}

TEST_CASE("list shows a line per scenario, sorted, with what is expected", "[cli]") {
  const Shell shell;
  shell.write("scenarios/b.json", hello);
  shell.write("scenarios/a.json", uneven(R"({ "verdict": "deadlock", "kind": "missing_participant" })"));
  shell.write("scenarios/scenario-v1.schema.json", "{}");
  shell.write("scenarios/notes.txt", "not a scenario");
  const Outcome outcome = shell.rollcall("list");
  CHECK(outcome.code == 0);
  CHECK(outcome.out ==
        "scenarios/a.json  deadlock/missing_participant  uneven\n"
        "scenarios/b.json  ok                            hello\n");
  CHECK(shell.rollcall("list scenarios/b.json").out == "scenarios/b.json  ok  hello\n");
  const Json json = Json::parse(shell.rollcall("list scenarios --format json").out);
  REQUIRE(json.size() == 2);
  CHECK(json[0] == Json({{"file", "scenarios/a.json"},
                         {"name", "uneven"},
                         {"verdict", "deadlock"},
                         {"kind", "missing_participant"}}));
}

TEST_CASE("list has a line for every case of a matrix, and view shows one of them", "[cli][fiber]") {
  const Shell shell;
  shell.write("sizes.json", R"({ "matrix": { "world_size": [2, 4] }, "program": [ { "barrier": {} } ] })");
  CHECK(shell.rollcall("list sizes.json").out ==
        "sizes.json::[world_size=2]  ok  sizes.json[world_size=2]\n"
        "sizes.json::[world_size=4]  ok  sizes.json[world_size=4]\n");
  CHECK(shell.rollcall("view 'sizes.json::[world_size=4]' -o page.html").code == 0);
  CHECK_THAT(contents(shell.path("page.html")), Contains("4 ranks finished"));
}

TEST_CASE("import turns a file of the hang library into a scenario that runs", "[cli][fiber]") {
  const Shell shell;
  const std::string source = ROLLCALL_SOURCE_DIR "/tests/data/hangs/both-send-first.json";
  CHECK(shell.rollcall("import hang " + source + " -o hang.json").code == 0);
  CHECK(shell.rollcall("run hang.json").code == 0);
  CHECK(shell.rollcall("import hang " + source + " --fixed -o fixed.json").code == 0);
  CHECK_THAT(shell.rollcall("run fixed.json -q").out, StartsWith("ok"));

  const Outcome wrong = shell.rollcall("import hang hang.json");
  CHECK(wrong.code == 4);
  CHECK_THAT(wrong.err, Contains("hang.json:"));
  CHECK(shell.rollcall("import hang nothing.json").code == 4);
  const Outcome unknown = shell.rollcall("import tape " + source);
  CHECK(unknown.code == 4);
  CHECK_THAT(unknown.err, Contains("cannot import 'tape'"));
}

TEST_CASE("list exits with 5 when there is nothing, and with 4 when something is broken", "[cli]") {
  const Shell shell;
  CHECK(shell.rollcall("list").code == 5);
  shell.write("scenarios/notes.txt", "not a scenario");
  CHECK(shell.rollcall("list").code == 5);
  shell.write("scenarios/broken.json", "{");
  shell.write("scenarios/hello.json", hello);
  const Outcome outcome = shell.rollcall("list");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.out, Contains("hello"));  // the others are still listed
  CHECK_THAT(outcome.err, Contains("broken.json"));
  CHECK(shell.rollcall("list missing.json").code == 4);
}

TEST_CASE("dumps of one moment that a pause would leave as well raise no alarm", "[cli]") {
  const Shell shell;
  const std::string set =
      "diagnose '" ROLLCALL_SOURCE_DIR "/tests/data/flight_recorder/cpu_stuck_dataloader_4/pickle' ";
  const Outcome text = shell.rollcall(set);
  CHECK(text.code == 6);
  CHECK_THAT(text.out, Contains("undecided[stuck_host]: rank 3 never issued all_reduce #13"));
  CHECK_THAT(text.out, Contains("confidence: low"));
  CHECK_THAT(text.out, Contains("a second dump"));
  const Json report = Json::parse(shell.rollcall(set + "--format json").out);
  CHECK(report.at("alarm") == false);
  CHECK(report.at("culprits") == Json({3}));
  CHECK(Json::parse(shell.rollcall(set + "--format json --hung").out).at("alarm") == true);
}

TEST_CASE("diagnose names the culprit of a real job's dumps", "[cli]") {
  const Shell shell;
  const std::string sets = "'" ROLLCALL_SOURCE_DIR "/tests/data/flight_recorder/";
  const Outcome text = shell.rollcall("diagnose " + sets + "cpu_stuck_dataloader_4/pickle' -q --hung");
  CHECK(text.code == 1);
  CHECK(text.out == "error[stuck_host]: rank 3 never issued all_reduce #13 on default_pg\n");

  const Outcome json = shell.rollcall("diagnose " + sets + "size_mismatch_8/json' --format json");
  CHECK(json.code == 1);
  const Json report = Json::parse(json.out);
  CHECK(report["schema_version"] == 1);
  CHECK(report["verdict"] == "size_mismatch");
  CHECK(report["culprits"] == Json::parse("[7]"));
  CHECK(report["at"]["group"] == "0");
  CHECK(report["at"]["collective_seq_id"] == 9);
  CHECK(report["confidence"] == "high");
  CHECK(report["victims"].is_array());
  CHECK(report["would_settle"].is_array());

  CHECK(shell.rollcall("diagnose " + sets + "healthy_batched_pipeline_4/pickle'").code == 0);
}

TEST_CASE("diagnose says what it cannot read, and goes on with the rest", "[cli]") {
  const Shell shell;
  shell.write("dumps/rank_0",
              "\x80\x02"
              "cos\nsystem\n.");
  const Outcome hostile = shell.rollcall("diagnose dumps");
  CHECK(hostile.code == 4);
  CHECK_THAT(hostile.err, Contains("dumps/rank_0: byte 2: opcode GLOBAL would run code"));
  shell.write("dumps/rank_1.json", R"({"version": "2.4", "pg_config": {}, "entries": []})");
  CHECK(shell.rollcall("diagnose dumps").code == 6);  // they hold no call
  shell.write("empty/readme.txt", "no dumps here");
  CHECK(shell.rollcall("diagnose empty").code == 5);
  CHECK(shell.rollcall("diagnose nowhere").code == 4);
}

namespace {

// As text for a terminal, for GitHub's runner, and for a reader.
bool is_harmless(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t said = line.find_first_not_of(' ');
    if (said != std::string::npos && line.compare(said, 2, "::") == 0) {
      return false;
    }
  }
  return text.find("##[") == std::string::npos && text.find('\x1b') == std::string::npos &&
         text.find("\u202e") == std::string::npos;
}

}  // namespace

TEST_CASE("hostile names reach no terminal and no CI as anything but text", "[cli][fiber]") {
  const Shell shell;
  shell.write("hostile.json",
              R"({ "version": 1, "world_size": 2, "name": "a\n::error::b ##[add-mask]z \u202e",
    "program": [ { "print": "x\n::stop-commands::x ##[group]" },
                 { "if": "rank == 0", "do": [ { "raise": "bad\n::error::boo \u001b[2J" } ] },
                 { "all_reduce": { "numel": 1, "label": "l\n::warning::q" } } ] })");
  shell.write("key.json", R"({ "version": 1, "world_size": 2, "\u001b[31m\n::error::x\u202e": 1 })");
  for (const std::string arguments :
       {"run hostile.json", "run hostile.json -q", "run hostile.json -v --timeline", "test hostile.json",
        "list hostile.json", "explore hostile.json", "run key.json", "test key.json",
        "run $'a\\e[31m\\n::error::x'", "run hostile.json --format $'\\e[1m##[x'", "diagnose hostile.json",
        "minimize hostile.json -q -o /dev/null"}) {
    CAPTURE(arguments);
    const Outcome outcome = shell.run("exec bash -c \"'" ROLLCALL_CLI "' " + arguments + "\"");
    CAPTURE(outcome.out, outcome.err);
    CHECK(is_harmless(outcome.out));
    CHECK(is_harmless(outcome.err));
  }
}

TEST_CASE("what a hostile server answers reaches no terminal as anything but text", "[cli]") {
  const Shell shell;
  shell.write("server.py",
              "import socket\n"
              "server = socket.create_server(('127.0.0.1', 0))\n"
              "print(server.getsockname()[1], flush=True)\n"
              "while True:\n"
              "    asking, _ = server.accept()\n"
              "    asking.recv(9999)\n"
              "    asking.sendall(b'HTTP/1.0 500 \\x1b[2J \\xe2\\x80\\xae ##[group]\\r\\n\\r\\n')\n"
              "    asking.close()\n");
  const Outcome outcome = shell.run(
      "python3 server.py >port & until [ -s port ]; do sleep 0.05; done; "
      "'" ROLLCALL_CLI "' attach 127.0.0.1:$(cat port); code=$?; kill $!; exit $code");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.err, Contains("500 \\x1b[2J"));
  CHECK(is_harmless(outcome.err));
}

}  // namespace rollcall::test::cli_test
