// Commands for getting started: init, completion, manual, --version.

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "scenarios/cli/shell/command_tree.h"
#include "tests/catch.h"
#include "tests/shell.h"

namespace rollcall::test::cli_begin_test {
namespace {

constexpr const char* scenario = "scenarios/training_loop.rollcall.json";

// Returns the commands that `rollcall --help` lists in two columns, under headings.
std::set<std::string> listed_commands(const std::string& help) {
  std::set<std::string> names;
  std::istringstream lines(help.substr(help.find("Find the rank that hangs a job:")));
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("  ") && line[2] != ' ' && line[2] != '-') {
      names.insert(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

// Returns the output of a shell that runs this script.
std::string offered(const Shell& shell, const std::string& program, const std::string& code) {
  shell.write("complete", code);
  return shell.run(program + " complete").out;
}

bool has(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

// Returns what bash offers for these words, the last of which is being typed.
std::string in_bash(const Shell& shell, const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) {
    list += "'" + word + "' ";
  }
  return offered(shell, "bash",
                 "source rollcall.bash\nCOMP_WORDS=(" + list + ")\nCOMP_CWORD=" +
                     std::to_string(words.size() - 1) + "\n_rollcall\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
}

}  // namespace

TEST_CASE("init writes a first scenario that passes, and CI for two hosts", "[cli][fiber]") {
  const Shell shell;
  const Outcome outcome = shell.rollcall("init");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  for (const char* file : {scenario, "scenarios/scenario-v1.schema.json", ".github/workflows/rollcall.yml",
                           ".gitlab/rollcall.yml", ".gitlab-ci.yml"}) {
    CHECK_THAT(outcome.out, Contains(std::string("wrote  ") + file));
    CHECK(std::filesystem::exists(shell.path(file)));
  }
  CHECK_THAT(outcome.out, Contains("next   rollcall test scenarios\n"));
  CHECK_THAT(outcome.out, EndsWith("CI installs it from there\n"));
  CHECK(shell.rollcall(std::string("run ") + scenario).code == 0);
  CHECK(contents(shell.path("scenarios/scenario-v1.schema.json")) == shell.rollcall("schema").out);
}

TEST_CASE("the first scenario, broken as its comment says, names the rank that is missing", "[cli][fiber]") {
  const Shell shell;
  REQUIRE(shell.rollcall("init --ci none").code == 0);
  std::string text = contents(shell.path(scenario));
  const std::string inputs = "\"inputs\": [6, 6, 6, 6]";
  const std::string broken = "\"inputs\": [5, 6, 6, 6]";
  CHECK_THAT(text, Contains("// " + broken + ","));  // the comment's own words
  text.replace(text.find(inputs), inputs.size(), broken);
  shell.write(scenario, text);
  const Outcome outcome = shell.rollcall(std::string("run ") + scenario);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, StartsWith("error[deadlock]: rank 0 never called all_reduce #5 on world"));
}

TEST_CASE("init never overwrites, and says what it left alone", "[cli]") {
  const Shell shell;
  shell.write(".gitlab-ci.yml", "mine\n");
  shell.write(scenario, "mine, too\n");
  const Outcome outcome = shell.rollcall("init");
  CHECK(outcome.code == 0);
  CHECK(contents(shell.path(".gitlab-ci.yml")) == "mine\n");
  CHECK(contents(shell.path(scenario)) == "mine, too\n");
  CHECK_THAT(outcome.out, Contains(std::string("kept   ") + scenario));
  CHECK_THAT(outcome.out, Contains("add to it: include: [{ local: .gitlab/rollcall.yml }]"));

  const Outcome again = shell.rollcall("init --format json");
  CHECK(nlohmann::json::parse(again.out)["wrote"].empty());
  CHECK(nlohmann::json::parse(again.out)["kept"].size() == 5);
}

TEST_CASE("init writes for the CI that it is told, and into the folder that it is told", "[cli]") {
  const Shell shell;
  CHECK(shell.rollcall("init nowhere").code == 4);
  CHECK_FALSE(std::filesystem::exists(shell.path("nowhere")));
  std::filesystem::create_directories(shell.path("mine"));
  CHECK_THAT(shell.rollcall("init mine --ci github").out,
             Contains("next   cd mine && rollcall test scenarios\n"));
  CHECK(std::filesystem::exists(shell.path("mine/.github/workflows/rollcall.yml")));
  CHECK_FALSE(std::filesystem::exists(shell.path("mine/.gitlab")));
  CHECK(shell.rollcall("init mine --ci jenkins").code == 4);
}

TEST_CASE("init writes all of its files or none", "[cli]") {
  const Shell shell;
  shell.write(".github", "a file where a folder should be");
  const Outcome outcome = shell.rollcall("init");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains(".github"));
  CHECK_FALSE(std::filesystem::exists(shell.path(scenario)));
  CHECK(shell.rollcall("init --ci gitlab").code == 0);
}

TEST_CASE("the command tree has every command and every option that help shows", "[cli]") {
  const Shell shell;
  const std::set<std::string> commands = listed_commands(shell.rollcall("--help").out);
  std::set<std::string> described;
  for (const cli::CommandHelp& command : cli::command_tree().commands) {
    described.insert(command.name);
    const std::string help = shell.rollcall(command.name + " --help").out;
    for (const cli::Argument& option : command.options) {
      INFO(command.name << " " << option.names.back());
      CHECK_THAT(help, Contains(option.names.back()));
      CHECK_FALSE(option.help.empty());
    }
    for (const cli::Argument& place : command.places) {
      CHECK_THAT(help, Contains(place.value));
    }
  }
  CHECK(described == commands);
  CHECK(described.contains("completion"));
}

TEST_CASE("every completion and the manual know every command and every long option", "[cli]") {
  const cli::CommandTree tree = cli::command_tree();
  const std::string manual = cli::manual(tree);
  const std::vector<std::string> texts{cli::bash_completion(tree), cli::zsh_completion(tree)};
  const std::string fish = cli::fish_completion(tree);
  for (const cli::CommandHelp& command : tree.commands) {
    CHECK_THAT(manual, Contains(".SS " + command.name + "\n"));
    for (const cli::Argument& option : command.options) {
      if (!option.names.back().starts_with("--")) {
        continue;
      }
      const std::string name = option.names.back().substr(2);
      INFO(command.name << " --" << name);
      std::string escaped;
      for (const char c : name) {
        escaped += c == '-' ? "\\-" : std::string(1, c);
      }
      CHECK_THAT(manual, Contains("\\-\\-" + escaped));
      CHECK_THAT(fish, Contains("-l " + name + " "));
      for (const std::string& text : texts) {
        CHECK_THAT(text, Contains("--" + name));
      }
    }
  }
  CHECK_THAT(manual, StartsWith(".TH ROLLCALL 1 "));
  CHECK_THAT(manual, Contains(".SH EXIT STATUS\n"));
}

TEST_CASE("bash completes commands, options and their values", "[cli]") {
  const Shell shell;
  shell.write("rollcall.bash", shell.rollcall("completion bash").out);
  CHECK(in_bash(shell, {"rollcall", "comple"}) == "completion\n");
  CHECK_THAT(in_bash(shell, {"rollcall", ""}), Contains("run\n") && Contains("init\n"));
  CHECK(in_bash(shell, {"rollcall", "--ver"}) == "--version\n");
  CHECK(in_bash(shell, {"rollcall", "run", "--see"}) == "--seed\n");
  CHECK(in_bash(shell, {"rollcall", "run", "--format", ""}) == "text\njson\n");
  CHECK(in_bash(shell, {"rollcall", "run", "--format", "=", "j"}) == "json\n");
  CHECK(in_bash(shell, {"rollcall", "run", "--format", "="}) == "text\njson\n");
  CHECK(in_bash(shell, {"rollcall", "run", "-q", "--color", "a"}) == "auto\nalways\n");
  CHECK(in_bash(shell, {"rollcall", "run", "--trace", ""}) == "\n");  // empty, so bash offers files
  CHECK(in_bash(shell, {"rollcall", "run", "sce"}) == "\n");
  CHECK(in_bash(shell, {"rollcall", "completion", ""}) == "bash\nzsh\nfish\n");
  CHECK_THAT(in_bash(shell, {"rollcall", "explain", "stra"}),
             Contains("straggler\n") || Contains("stray_device\n"));
}

TEST_CASE("zsh and fish accept their scripts, and fish completes with its own", "[cli]") {
  const Shell shell;
  shell.write("rollcall.zsh", shell.rollcall("completion zsh").out);
  shell.write("rollcall.fish", shell.rollcall("completion fish").out);
  if (has("zsh")) {
    CHECK(offered(
              shell, "zsh -f",
              "autoload -Uz compinit; compinit -u -D; source ./rollcall.zsh && print $_comps[rollcall]\n") ==
          "_rollcall\n");
  }
  if (has("fish")) {
    const auto in_fish = [&shell](const std::string& line) {
      return offered(shell, "HOME=. fish --no-config",
                     "source rollcall.fish\ncomplete --do-complete '" + line + "'\n");
    };
    CHECK_THAT(in_fish("rollcall comple"), StartsWith("completion\t"));
    CHECK_THAT(in_fish("rollcall run --see"), StartsWith("--seed"));
    CHECK_THAT(in_fish("rollcall run --format "), Contains("text") && Contains("json"));
    CHECK_THAT(in_fish("rollcall completion "), Contains("bash") && Contains("fish"));
  }
}

TEST_CASE("the manual page is one that man reads without complaint", "[cli]") {
  const Shell shell;
  shell.write("rollcall.1", shell.rollcall("manual").out);
  if (has("groff")) {
    const Outcome outcome = shell.run("groff -man -Tascii -P-cbou -ww -Wbreak rollcall.1 >page.txt");
    CHECK(outcome.err.empty());
    CHECK_THAT(contents(shell.path("page.txt")), Contains("--trace-window A:B\n"));
  }
  if (has("lexgrog")) {
    CHECK_THAT(shell.run("lexgrog rollcall.1").out, Contains("rollcall - find the rank that is missing"));
  }
}

TEST_CASE("the version comes with the libraries that it was built with", "[cli]") {
  const Shell shell;
  const std::string text = shell.rollcall("--version").out;
  CHECK_THAT(text, StartsWith("rollcall 0."));
  CHECK_THAT(
      text, Contains("Boost 1.") && Contains("fmt ") && Contains("nlohmann-json 3.") && Contains("CLI11 2."));
  CHECK_THAT(text, Contains("with Gloo ") || Contains("without Gloo"));
  CHECK_THAT(text, Contains("with the headers of CUDA ") || Contains("without CUDA and NCCL"));
}

}  // namespace rollcall::test::cli_begin_test
