// The first commands that users type: `rollcall PATH`, and a command that is wrong for their file.

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/cli/shell/command_tree.h"
#include "tests/catch.h"
#include "tests/shell.h"
#include "tests/shipped_scenarios.h"

namespace rollcall::test::path_cli_test {

namespace {

std::string shipped(const std::string& name) { return ROLLCALL_SOURCE_DIR "/" + example_file(name); }
const std::string dumps = ROLLCALL_SOURCE_DIR "/tests/data/flight_recorder/tp_dp_crossed_4/pickle";

constexpr const char* script = "import torch.distributed as dist\n";
constexpr const char* times =
    "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n1024 256 float sum -1 9.1 0.1 0.1 0\n";

// Writes one file of every kind into the folder.
void put_one_of_each(const Shell& shell) {
  shell.run("cp " + shipped("uneven_inputs") + " hang.json && mkdir scenarios && cp " +
            shipped("uneven_inputs") + " scenarios && cp -r " + dumps + " dumps");
  shell.rollcall("run hang.json -q --trace trace.json --report json=report.json --report html=page.html");
  shell.write("train.py", script);
  shell.write("launch", std::string("#!/usr/bin/env python3\n") + script);
  shell.write("perf.txt", times);
  shell.write("job.log",
              "[rank1]: Traceback (most recent call last):\nRuntimeError: Connection closed by peer\n");
}

}  // namespace

TEST_CASE("a path alone is recognized, and the command that is for it runs", "[cli][fiber]") {
  const Shell shell;
  put_one_of_each(shell);
  const std::vector<std::vector<std::string>> cases = {
      {"hang.json", "a scenario: rollcall run hang.json"},
      {"scenarios", "a directory of scenarios: rollcall test scenarios"},
      {"dumps", "what a job left behind: rollcall diagnose dumps"},
      {"job.log", "what a job left behind: rollcall diagnose job.log"},
      {"trace.json", "a trace: rollcall view trace.json"},
      {"report.json", "a report of rollcall: rollcall view report.json"},
      {"perf.txt", "a table of measured times: rollcall slow perf.txt"},
  };
  for (const auto& each : cases) {
    CAPTURE(each);
    const Outcome outcome = shell.rollcall(each[0] + " -q");
    CHECK_THAT(outcome.err, Contains(each[1]));
    CHECK(outcome.code != 3);
  }
  CHECK_THAT(shell.rollcall("hang.json -q").out,
             StartsWith("error[deadlock]: rank 0 never called all_reduce #5"));
  CHECK_THAT(shell.rollcall("dumps -q").out, StartsWith("error[cross_group_deadlock]"));
  CHECK_THAT(shell.rollcall("train.py", "PATH=/nowhere").err,
             Contains("a Python script: rollcall record -n 4 train.py"));
  CHECK_THAT(shell.rollcall("launch", "PATH=/nowhere").err, Contains("rollcall record -n 4 launch"));
  CHECK_THAT(shell.rollcall("127.0.0.1:1").err,
             Contains("the address of a job: rollcall attach 127.0.0.1:1"));
  const Outcome page = shell.rollcall("page.html");
  CHECK(page.code == 4);
  CHECK_THAT(page.err, Contains("'page.html' is a page for a browser; open it in a browser"));
}

TEST_CASE("the wrong command for a file names the right one", "[cli][fiber]") {
  const Shell shell;
  put_one_of_each(shell);
  const std::vector<std::vector<std::string>> cases = {
      {"run train.py",
       "'train.py' is not a scenario but a Python script; `rollcall record -n 4 train.py` runs it"},
      {"run dumps",
       "'dumps' is not a scenario but what a job left behind; `rollcall diagnose dumps` finds the culprit"},
      {"run trace.json", "but a trace; `rollcall view trace.json`"},
      {"run report.json", "but a report of rollcall; `rollcall view report.json`"},
      {"run scenarios", "but a directory of scenarios; `rollcall test scenarios`"},
      {"explore train.py", "but a Python script"},
      {"minimize dumps", "but what a job left behind"},
      {"compare train.py", "but a Python script"},
      {"real dumps", "but what a job left behind"},
      {"record -n 2 hang.json",
       "'hang.json' is not a script but a scenario; `rollcall run hang.json` simulates it"},
      {"diagnose hang.json", "'hang.json' is a scenario; `rollcall run hang.json` simulates it"},
      {"diagnose train.py", "'train.py' is a Python script; `rollcall record -n 4 train.py`"},
      {"view train.py", "'train.py' is a Python script"},
      {"view page.html", "'page.html' is already a page"},
  };
  for (const auto& each : cases) {
    CAPTURE(each);
    const Outcome outcome = shell.rollcall(each[0]);
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.err, Contains(each[1]));
  }
  // A broken scenario still counts as a scenario, and its reader says where it is broken.
  shell.write("broken.json", "{ \"version\": 1,, }");
  CHECK_THAT(shell.rollcall("run broken.json").err, StartsWith("broken.json:1:16: error"));
  // A file with no readable contents does not.
  shell.write("empty", "");
  for (const std::string nothing : {"empty", "/dev/null", "/dev/zero"}) {
    const Outcome outcome = shell.rollcall("diagnose " + nothing);
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.err, !Contains("scenario"));
  }
}

TEST_CASE("record looks at where traces go before the script runs", "[cli]") {
  const Shell shell;
  shell.write("train.py", script);
  shell.write("traces/rank7.json", "{}");
  const std::vector<std::vector<std::string>> cases = {
      {"--trace x.txt", "'x.txt' names no format"},
      {"--trace x.json --trace-ranks 9", "--trace-ranks"},
      {"--trace-dir traces", "holds rank7.json of another run"},
  };
  for (const auto& each : cases) {
    CAPTURE(each);
    const Outcome outcome = shell.rollcall("record -n 2 " + each[0] + " train.py", "PATH=/nowhere");
    CHECK(outcome.code == 4);  // and not 77: it did not search for a Python
    CHECK_THAT(outcome.err, Contains(each[1]));
  }
}

TEST_CASE("a dash is standard input", "[cli][fiber]") {
  const Shell shell;
  shell.run("cp " + shipped("uneven_inputs") + " hang.json");
  for (const std::string command : {"run - -q", "- -q"}) {
    const Outcome outcome =
        shell.run("'" ROLLCALL_CLI "' " + command + " < '" + shell.path("hang.json").string() + "'");
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, StartsWith("error[deadlock]"));
  }
  const Outcome empty = shell.rollcall("run -");
  CHECK(empty.code == 4);
  CHECK_THAT(empty.err, StartsWith("-: error: the file is empty"));
}

TEST_CASE("help fits a terminal of 80 columns, and every command has two examples that parse", "[cli]") {
  const Shell shell;
  std::vector<std::string> commands = {""};
  for (const cli::CommandHelp& command : cli::command_tree().commands) {
    commands.push_back(command.name);
    CHECK(command.examples.size() == 2);
    for (const std::string& example : command.examples) {
      CHECK_THAT(example, StartsWith("rollcall " + command.name));
    }
  }
  const std::regex parser_words(" [A-Z]+:(FILE|DIR|PATH|POSITIVE|NONNEGATIVE|INT|FLOAT)");
  for (const std::string& command : commands) {
    std::istringstream lines(shell.rollcall(command + " --help").out);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 80);
      CHECK_FALSE(line.find(" TEXT") != std::string::npos);
      CHECK_FALSE(line.find("INT in") != std::string::npos);
      CHECK_FALSE(std::regex_search(line, parser_words));
    }
  }
}

TEST_CASE("a report is as wide as the terminal that it goes to, and the same everywhere else",
          "[cli][fiber]") {
  const Shell shell;
  const std::string run = "'" ROLLCALL_CLI "' run --color never " + shipped("uneven_inputs");
  if (shell.run("command -v script").code != 0) {
    WARN("skipped: no script(1) to make a terminal (Debian's package bsdutils)");
    return;
  }
  const auto widest = [](const std::string& text) {
    std::size_t columns = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      line.erase(line.find_last_not_of("\r") + 1);
      columns = line.starts_with("replay: ") ? columns : std::max(columns, line.size());
    }
    return columns;
  };
  CHECK(widest(shell.run("script -qec \"stty cols 80; " + run + "\" /dev/null").out) <= 80);
  CHECK(widest(shell.run("script -qec \"stty cols 200; " + run + "\" /dev/null").out) > 80);
  const Outcome piped = shell.run("cd '" ROLLCALL_SOURCE_DIR "' && stty cols 80 2>/dev/null; '" ROLLCALL_CLI
                                  "' run scenarios/uneven_inputs.json");
  CHECK(piped.out == contents(ROLLCALL_SOURCE_DIR "/scenarios/uneven_inputs.expected"));
}

TEST_CASE("a browser that is missing loses nothing", "[cli][fiber]") {
  const Shell shell;
  const Outcome outcome =
      shell.rollcall("view --open -o page.html " + shipped("uneven_inputs"), "PATH=/nowhere");
  CHECK(outcome.code == 0);
  CHECK(outcome.out == "page.html\n");
  CHECK(outcome.err == "rollcall: no browser was opened: xdg-open is not installed\n");
}

TEST_CASE("other names of dtypes and arguments are known", "[cli][fiber]") {
  const Shell shell;
  const auto complaint = [&](const std::string& arguments) {
    shell.write("x.json", R"({ "version": 1, "world_size": 2, "program": [ { "all_reduce": { "numel": 3, )" +
                              arguments + " } } ] }");
    return shell.rollcall("run x.json").err;
  };
  CHECK_THAT(complaint(R"("dtype": "fp32")"), Contains("did you mean \"float32\"?"));
  CHECK_THAT(complaint(R"("dtype": "bf16")"), Contains("did you mean \"bfloat16\"?"));
  CHECK_THAT(complaint(R"("op": "SUM")"), Contains("did you mean \"reduce_op\"?"));
}

TEST_CASE("two runs are compared in one line", "[cli][fiber]") {
  const Shell shell;
  const std::string uneven = shipped("uneven_inputs");
  CHECK(shell.rollcall("compare -q " + uneven + " " + uneven).out == "before and after agree\n");
  const std::string join = shipped("uneven_inputs_join");
  CHECK_THAT(shell.rollcall("compare -q " + uneven + " " + join).out,
             StartsWith("before and after differ: verdict"));
}

TEST_CASE("completion knows presets of clusters and kinds of reports", "[cli]") {
  const std::string bash = cli::bash_completion(cli::command_tree());
  CHECK_THAT(bash, Contains("run:--report) words='html= json= junit= sarif= github' ;;"));
  CHECK_THAT(bash, Contains("diagnose:--report) words='html= json=' ;;"));
  CHECK_THAT(bash, Contains("h100-8"));
}

}  // namespace rollcall::test::path_cli_test
