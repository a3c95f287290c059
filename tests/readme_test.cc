// Checks that the documents show what the program does: their reports, scenarios, code and links.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/contents.h"
#include "viz/text/text_report.h"

namespace rollcall::test::readme_test {
namespace {

namespace fs = std::filesystem;

const fs::path root = ROLLCALL_SOURCE_DIR;

// Returns the contents of the README's fenced blocks that are marked `language`.
std::vector<std::string> blocks(const std::string& language) {
  const std::string text = contents(root / "README.md");
  const std::string fence = "\n```" + language + "\n";
  std::vector<std::string> found;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    found.push_back(text.substr(at, text.find("\n```\n", at) + 1 - at));
  }
  return found;
}

std::string between(const std::string& text, const std::string& first, const std::string& last) {
  const std::size_t begin = text.find(first) + first.size();
  return text.substr(begin, text.find(last) - begin);
}

std::vector<fs::path> documents() {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    paths.push_back(entry.path());
  }
  for (const char* folder : {"docs", "bench", "scenarios/examples"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      paths.push_back(entry.path());
    }
  }
  std::erase_if(paths, [](const fs::path& path) { return path.extension() != ".md"; });
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TEST_CASE("the page about verdicts shows the report that its scenario gives, and the README stays short") {
  const std::string readme = contents(root / "README.md");
  CHECK(std::ranges::count(readme, '\n') < 200);
  CHECK_THAT(contents(root / "docs/verdicts.md"),
             Contains("\n```text\n" + contents(root / "scenarios/uneven_inputs.expected") + "```\n"));
}

TEST_CASE("the job that the README begins with is the one that can be recorded") {
  const std::string script = contents(root / "scenarios/hero.py");
  const std::vector<std::string> jobs = blocks("python");
  REQUIRE(!jobs.empty());
  std::istringstream lines(jobs.front());
  for (std::string line; std::getline(lines, line);) {
    const std::string code = std::regex_replace(line, std::regex("^ +| *#.*$"), "");
    CHECK_THAT(script, Contains(code));
  }
}

TEST_CASE("every scenario in the README comes out as it expects", "[fiber]") {
  const std::vector<std::string> scenarios = blocks("jsonc");
  CHECK(scenarios.size() == 2);
  for (const std::string& text : scenarios) {
    INFO(text);
    CHECK(scenario::run(scenario::parse_scenario(text, "README.md")).unmet == std::vector<std::string>{});
  }
}

TEST_CASE("the rank program in the README is the one that is tested") {
  const std::vector<std::string> programs = blocks("cpp");
  REQUIRE(programs.size() == 1);
  CHECK(programs.front() ==
        between(contents(root / "tests/rank_program_test.cc"), "// README begins\n", "// README ends\n"));
}

TEST_CASE("the list of examples names every example, and its verdict as its report has it") {
  const fs::path folder = root / "scenarios/examples";
  const std::string list = contents(folder / "README.md");
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".json") {
      const std::string link = "](" + fs::relative(entry.path(), folder).generic_string() + ") |";
      const std::size_t begin = list.find(link);
      INFO(link);
      REQUIRE(begin != std::string::npos);
      const std::string row = list.substr(begin, list.find('\n', begin) - begin);
      const std::string report = contents(fs::path(entry.path()).replace_extension(".expected"));
      const std::size_t bracket = report.find("error[");
      const std::string verdict =
          bracket == 0 ? report.substr(6, report.find(']') - 6) : report.substr(0, report.find(':'));
      CHECK_THAT(row, Contains("| " + verdict));
    }
  }
}

TEST_CASE("the index of decisions has a line for every record") {
  const std::string index = contents(root / "docs/decisions/README.md");
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "docs/decisions")) {
    if (entry.path().filename() != "README.md") {
      CHECK_THAT(index, Contains("](" + entry.path().filename().string() + ") | "));
    }
  }
}

TEST_CASE("every link to a file of the repository leads somewhere") {
  static const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  std::vector<std::string> broken;
  for (const fs::path& path : documents()) {
    const std::string text = contents(path);
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      if (!fs::exists(path.parent_path() / (*it)[1].str())) {
        broken.push_back(path.filename().string() + ": " + (*it)[1].str());
      }
    }
  }
  CHECK(broken == std::vector<std::string>{});
}

}  // namespace rollcall::test::readme_test
