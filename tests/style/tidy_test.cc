// Style rules that matter, as tests: which files may include which, and what would make a run depend on anything but
// its scenario and seed. A rule here has only the exceptions that it lists.

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/style/source_tree.h"

namespace rollcall::test::tidy_test {
namespace {

// Lines such as "path:line: what is wrong". A test compares with the empty list, so that a failure prints them all.
using Offences = std::vector<std::string>;

std::string place(const SourceFile& file, std::size_t line) { return file.path + ":" + std::to_string(line); }

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns every place below `folders` where `pattern` matches a line of code.
Offences find_in_code(const std::vector<SourceFile>& files, const std::vector<std::string>& folders,
                      const std::string& pattern) {
  const std::regex regex(pattern, std::regex::optimize);
  Offences offences;
  for (const SourceFile& file : files) {
    if (!is_one_of(file.path.substr(0, file.path.find('/')), folders)) {
      continue;
    }
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      std::smatch match;
      if (std::regex_search(file.code[i], match, regex)) {
        offences.push_back(place(file, i + 1) + ": " + match.str());
      }
    }
  }
  return offences;
}

// Folders whose output must be the same on every machine and in every run.
const std::vector<std::string> deterministic_folders = {"sim", "viz", "traces", "scenarios"};

// Boost.Fiber's interface takes the *type* of a clock; only reading a clock counts.
const std::string wall_clock = R"(clock::now\b|\b(gettimeofday|clock_gettime|localtime|gmtime|ftime)\b)"
                               R"(|\btime\s*\(\s*(nullptr|NULL|0)\s*\)|\bstd::clock\s*\()";

// They read when a run of tests began, on which no verdict depends, and how long a real job has been silent.
const std::vector<std::string> files_with_clocks = {"scenarios/test/timestamp.cc",
                                                    "scenarios/watch/clock.cc"};

const std::string unseeded_chance = R"(\brandom_device\b|\b(rand|srand|drand48|getrandom)\s*\()";

// The folders of the program, lowest first: a folder includes only folders before it in the list. docs/architecture.md
// shows this list.
const std::vector<std::string> folders_from_below = {
    "sim/base",
    "sim/values",
    "sim/torch",
    "sim/tensor",
    "sim/c10d",
    "sim/cost",
    "sim/report",
    "sim/train",
    "sim/pipeline",
    "sim/dtensor",
    "sim",  // dist.h, the umbrella
    "sim/match",
    "sim/wording",
    "sim/repair",
    "sim/judge",
    "sim/diagnose",
    "sim/gloo",
    "sim/nccl",
    "sim/fibers",
    "sim/engine",
    "sim/explore",
    "viz/base",
    "viz/rows",
    "viz/kinds",
    "viz/traces",
    "viz/text",
    "viz/json",
    "viz/ci",
    "viz/html",
    "viz",  // catch2.h, for users
    "traces/values",
    "traces/logs",
    "traces/dumps",
    "traces/formats",
    "traces/watch",
    "real/process",
    "real/rank",
    "real/gloo",
    "real/nccl",
    "real/backends",
    "real/evidence",
    "real/launch",
    "real/observer",
    "scenarios/json",
    "scenarios/program",
    "scenarios/format",
    "scenarios/run",
    "scenarios/import",
    "scenarios/measured",
    "scenarios/compare",
    "scenarios/predict",
    "scenarios/prove",
    "scenarios/record",
    "scenarios/watch",
    "scenarios/recordings",
    "scenarios/test",
    "scenarios/variants",
    "scenarios/cli/shell",
    "scenarios/cli/terminal",
    "scenarios/cli",
    "scenarios/cli/jobs",
    "scenarios/cli/scripts",
    "scenarios/cli/arguments",
};

// Folders that come before a folder in the list, but that it must not include.
struct Forbidden {
  std::string folder;  // and those below it
  std::vector<std::string> included;
  std::string why;
};
const std::vector<Forbidden> forbidden = {
    {"viz",
     {"sim/match", "sim/wording", "sim/judge", "sim/diagnose", "sim/gloo", "sim/nccl", "sim/engine",
      "sim/explore", "sim/train", "sim/cost"},
     "writers see what a run left behind, never the run"},
    {"traces", {"sim/fibers", "sim/engine", "sim/explore", "viz"}, "readers of recordings run nothing"},
    {"real",
     {"sim/fibers", "sim/engine", "sim/explore", "sim/gloo", "sim/nccl", "sim/cost", "viz", "traces"},
     "real ranks are not simulated"},
    {"sim/judge", {"sim/train", "sim/cost"}, "a judge is pure"},
    {"sim/match", {"sim/train", "sim/cost"}, "a judge is pure"},
};

bool is_below(const std::string& folder, const std::string& top) {
  return folder == top || folder.starts_with(top + "/");
}

// The headers for programs that a writer may include: values, and nothing that could run a program.
const std::vector<std::string> value_headers = {"sim/c10d/op.h", "sim/c10d/backend_traits.h"};

// Few files use Boost.Fiber, so that another kind of stack could replace it, and because Boost's headers are slow to
// compile. Benchmarks of Boost.Fiber itself are not part of the program.
const std::vector<std::string> files_with_boost = {"sim/fibers/rank_scheduler.cc"};

// Returns the folder's height from below, starting at 0; nothing for folders that may include everything: tests and
// benchmarks.
std::optional<std::size_t> height(const std::string& folder) {
  const auto found = std::ranges::find(folders_from_below, folder);
  return found == folders_from_below.end() ? std::nullopt
                                           : std::optional<std::size_t>(found - folders_from_below.begin());
}

bool is_forbidden(const std::string& folder, const std::string& included) {
  return std::ranges::any_of(forbidden, [&](const Forbidden& rule) {
    return is_below(folder, rule.folder) && std::ranges::any_of(rule.included, [&](const std::string& top) {
             return is_below(included, top);
           });
  });
}

Offences wrong_layers(const std::vector<SourceFile>& files) {
  Offences offences;
  for (const SourceFile& file : files) {
    const std::optional<std::size_t> own = height(file.folder());
    if (!own) {
      continue;
    }
    for (const Include& include : includes_of(file)) {
      const std::string folder = folder_of(include.path);
      if (!include.quoted || folder == file.folder()) {
        continue;
      }
      const std::optional<std::size_t> other = height(folder);
      if (!other || *other > *own || is_forbidden(file.folder(), folder)) {
        offences.push_back(place(file, include.line) + ": " + file.folder() + " includes " + include.path);
      }
    }
  }
  return offences;
}

// Returns the names of the unordered containers that a file declares.
std::set<std::string> unordered_names(const SourceFile& file) {
  static const std::regex declaration(
      R"(\bunordered_(?:multi)?(?:map|set)\s*<.*>\s*&?\s*(\w+)\s*(?:[;={,)]|$))");
  std::set<std::string> names;
  for (const std::string& line : file.code) {
    std::smatch match;
    if (line.find("unordered_") != std::string::npos && std::regex_search(line, match, declaration)) {
      names.insert(match[1]);
    }
  }
  return names;
}

// Finds loops over a container that the same file, or its header, declares unordered.
Offences unordered_loops(const std::vector<SourceFile>& files) {
  static const std::regex loop(R"(\bfor\s*\(.*[^:]:\s*(?:\w+(?:\.|->))*(\w+)\s*\)|\b(\w+)\.c?begin\(\))");
  std::map<std::string, std::set<std::string>> names_of_stem;
  for (const SourceFile& file : files) {
    names_of_stem[file.path.substr(0, file.path.rfind('.'))].merge(unordered_names(file));
  }
  Offences offences;
  for (const SourceFile& file : files) {
    const auto& names = names_of_stem[file.path.substr(0, file.path.rfind('.'))];
    for (std::size_t i = 0; i < file.code.size() && !names.empty(); ++i) {
      std::smatch match;
      if (std::regex_search(file.code[i], match, loop) &&
          (names.contains(match[1]) || names.contains(match[2]))) {
        offences.push_back(place(file, i + 1) + ": iterates over an unordered container");
      }
    }
  }
  return offences;
}

// Counts columns as a reader does: UTF-8's continuation bytes take no space.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string whole_text(const SourceFile& file) {
  std::string text;
  for (const std::string& line : file.lines) {
    text += line + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a folder includes only what lies below it", "[tidy]") {
  CHECK(wrong_layers(source_tree()) == Offences{});

  // The check finds what it looks for.
  const auto is_wrong = [](const char* file, const std::string& included) {
    return !wrong_layers({parse_source(file, "#include \"" + included + "\"\n")}).empty();
  };
  CHECK(is_wrong("sim/c10d/a.h", "sim/report/report.h"));
  CHECK(is_wrong("real/launch/a.cc", "sim/engine/simulate.h"));
  CHECK(is_wrong("viz/rows/a.cc", "sim/judge/judge.h"));
  CHECK_FALSE(is_wrong("viz/rows/a.cc", "sim/report/report.h"));
}

TEST_CASE("every folder of the program has its place among the others", "[tidy]") {
  Offences homeless;
  for (const SourceFile& file : source_tree()) {
    const std::string top = file.path.substr(0, file.path.find('/'));
    if (top != "tests" && top != "bench" && !height(file.folder())) {
      homeless.push_back(file.path);
    }
  }
  CHECK(homeless == Offences{});
}

TEST_CASE("a folder has at most 50 files", "[tidy]") {
  std::map<std::string, std::size_t> files_in;
  for (const SourceFile& file : source_tree()) {
    ++files_in[file.folder()];
  }
  Offences offences;
  for (const auto& [folder, files] : files_in) {
    if (folder.starts_with("tests/") ? files > 80 : files > 50) {
      offences.push_back(folder + ": " + std::to_string(files) + " files");
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("writers include values, and nothing that could run a program", "[tidy]") {
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    for (const Include& include : includes_of(file)) {
      const bool is_program = include.quoted && folder_of(include.path) == "sim/c10d";
      if (is_below(file.folder(), "viz") && is_program && !is_one_of(include.path, value_headers)) {
        offences.push_back(place(file, include.line) + ": " + include.path);
      }
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("the path in an include is the path on disk", "[tidy]") {
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    for (const Include& include : includes_of(file)) {
      if (include.quoted &&
          !std::filesystem::exists(std::filesystem::path(ROLLCALL_SOURCE_DIR) / include.path)) {
        offences.push_back(place(file, include.line) + ": " + include.path);
      }
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("Boost stays inside the few files that need it", "[tidy]") {
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    for (const Include& include : includes_of(file)) {
      bool allowed = file.folder() == "bench" || is_one_of(file.path, files_with_boost);
      if (include.path.starts_with("boost/") && !allowed) {
        offences.push_back(place(file, include.line) + ": " + include.path);
      }
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("tests take matchers from tests/catch.h, which has those of Catch2's versions 2 and 3", "[tidy]") {
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    if (file.path != "tests/catch.h") {
      auto found = find_in_code({file}, {"tests"}, R"(\bCatch::Matchers\b)");
      offences.insert(offences.end(), found.begin(), found.end());
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("no header drags in a JSON parser", "[tidy]") {
  Offences offences;  // nlohmann/json_fwd.hpp names the types, and costs a second less per includer
  for (const SourceFile& file : source_tree()) {
    for (const Include& include : includes_of(file)) {
      if (file.is_header() && include.path == "nlohmann/json.hpp") {
        offences.push_back(place(file, include.line) + ": " + include.path);
      }
    }
  }
  CHECK(offences == Offences{});
}

// fmt/core.h costs a tenth of fmt/format.h in fmt 9 and 10, and includes it in newer versions.
TEST_CASE("who calls nothing but fmt::format includes fmt/core.h", "[tidy]") {
  static const std::regex more(R"(\bfmt::(?!format\()|\bFMT_)");
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    const auto includes = includes_of(file);
    const auto include = std::ranges::find(includes, "fmt/format.h", &Include::path);
    const auto needs_more = [](const std::string& line) { return std::regex_search(line, more); };
    if (include != includes.end() && std::ranges::none_of(file.code, needs_more)) {
      offences.push_back(place(file, include->line) + ": fmt/format.h");
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("nothing that a report depends on reads a clock", "[tidy]") {
  std::vector<SourceFile> files = source_tree();
  std::erase_if(files, [](const SourceFile& file) { return is_one_of(file.path, files_with_clocks); });
  CHECK(files.size() + files_with_clocks.size() == source_tree().size());
  CHECK(find_in_code(files, deterministic_folders, wall_clock) == Offences{});

  auto finds = [](const char* text) {
    return !find_in_code({parse_source("sim/a.cc", text)}, deterministic_folders, wall_clock).empty();
  };
  CHECK(finds("auto t = std::chrono::steady_clock::now();"));
  CHECK(finds("auto t = time(nullptr);"));
  CHECK_FALSE(finds("void suspend_until(const std::chrono::steady_clock::time_point& time);"));
  CHECK_FALSE(finds("// steady_clock::now() would be wrong here"));
}

TEST_CASE("nothing draws numbers that the seed does not determine", "[tidy]") {
  CHECK(find_in_code(source_tree(), deterministic_folders, unseeded_chance) == Offences{});

  CHECK(find_in_code({parse_source("sim/a.cc", "int x = rand();")}, {"sim"}, unseeded_chance).size() == 1);
  CHECK(find_in_code({parse_source("sim/a.cc", "int x = operand();")}, {"sim"}, unseeded_chance).empty());
}

TEST_CASE("nothing iterates over an unordered container", "[tidy]") {
  std::vector<SourceFile> files;
  std::copy_if(source_tree().begin(), source_tree().end(), std::back_inserter(files),
               [](const SourceFile& file) {
                 return is_one_of(file.path.substr(0, file.path.find('/')), deterministic_folders);
               });
  CHECK(unordered_loops(files) == Offences{});

  auto header =
      parse_source("sim/a.h", "std::unordered_map<int, std::vector<int>> seen_;\nstd::vector<int> order_;\n");
  auto loops = [&header](const char* text) {
    return unordered_loops({header, parse_source("sim/a.cc", text)}).size();
  };
  CHECK(loops("for (const auto& [key, value] : seen_) {}") == 1);
  CHECK(loops("for (const auto& entry : table->seen_) {}") == 1);
  CHECK(loops("auto first = seen_.begin();") == 1);
  CHECK(loops("for (int key : order_) { use(seen_.at(key)); }") == 0);
}

TEST_CASE("every header begins its code with pragma once", "[tidy]") {
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    if (file.is_header() && (file.lines.empty() || file.lines.front() != "#pragma once")) {
      offences.push_back(file.path);
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("no header opens a namespace for its includers", "[tidy]") {
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    if (file.is_header()) {
      auto found =
          find_in_code({file}, {file.path.substr(0, file.path.find('/'))}, R"(\busing\s+namespace\b)");
      offences.insert(offences.end(), found.begin(), found.end());
    }
  }
  CHECK(offences == Offences{});
}

// Tests compile several files at a time, and many name their helpers alike.
TEST_CASE("each test file has a namespace of its own name", "[tidy]") {
  const auto opens = [](const std::string& line) { return line.starts_with("namespace rollcall"); };
  const auto is_installed = [](const Include& include) { return include.path.starts_with("rollcall/"); };
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with("_test.cc") || std::ranges::any_of(includes_of(file), is_installed)) {
      continue;  // not a test, or one that is written as users write theirs
    }
    const std::string own = "::" + std::filesystem::path(file.path).stem().string() + " {";
    const auto opened = std::ranges::find_if(file.code, opens);
    if (opened == file.code.end() || !opened->ends_with(own)) {
      offences.push_back(file.path);
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("lines have at most 120 columns and no tabs", "[tidy]") {
  constexpr std::size_t columns_max = 120;
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (columns(file.lines[i]) > columns_max) {
        offences.push_back(place(file, i + 1) + ": " + std::to_string(columns(file.lines[i])) + " columns");
      }
      if (file.lines[i].find('\t') != std::string::npos) {
        offences.push_back(place(file, i + 1) + ": a tab");
      }
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("the name of a test is a sentence", "[tidy]") {
  static const std::regex test_case(R"re(TEST_CASE\(\s*"([^"]*)")re");
  Offences offences;
  for (const SourceFile& file : source_tree()) {
    if (!file.path.starts_with("tests/")) {
      continue;
    }
    std::string text = whole_text(file);
    for (std::sregex_iterator it(text.begin(), text.end(), test_case), end; it != end; ++it) {
      std::string name = (*it)[1];
      bool is_option = name.starts_with('-');  // to Catch2, when CTest names the test to run
      const bool is_pattern = name.find_first_of(";[]*\\") != std::string::npos;  // to CMake or Catch2
      if (std::count(name.begin(), name.end(), ' ') < 2 || name.ends_with('.') || is_option || is_pattern) {
        offences.push_back(file.path + ": \"" + name + "\"");
      }
    }
  }
  CHECK(offences == Offences{});
}

TEST_CASE("a test that a page names is there", "[tidy]") {
  std::set<std::string> names;
  static const std::regex test_case(R"re(TEST_CASE\(\s*("[^"]*"(\s*"[^"]*")*)\s*[,)])re");
  for (const SourceFile& file : source_tree()) {
    const std::string text = whole_text(file);
    for (std::sregex_iterator it(text.begin(), text.end(), test_case), end; it != end; ++it) {
      names.insert(std::regex_replace((*it)[1].str(), std::regex(R"re("\s*"|")re"), ""));
    }
  }
  const std::string page = contents(std::filesystem::path(ROLLCALL_SOURCE_DIR) / "docs/fuzzing.md");
  const std::string table = page.substr(page.find("## What broke once"));
  static const std::regex cell(R"re(\| `([^`]*)` \|\n)re");
  std::size_t named = 0;
  for (std::sregex_iterator it(table.begin(), table.end(), cell), end; it != end; ++it, ++named) {
    CAPTURE((*it)[1].str());
    CHECK(names.contains((*it)[1].str()));
  }
  CHECK(named > 20);
}

TEST_CASE("tests that run ranks say so with the tag fiber", "[tidy]") {
  Offences offences;  // the asan preset leaves out tests with this tag; see tests/CMakeLists.txt
  for (const SourceFile& file : source_tree()) {
    if (!file.path.starts_with("tests/") || !file.path.ends_with("_test.cc")) {
      continue;
    }
    for (const Include& include : includes_of(file)) {
      if (include.path == "sim/engine/simulate.h" && whole_text(file).find("[fiber]") == std::string::npos) {
        offences.push_back(file.path);
      }
    }
  }
  CHECK(offences == Offences{});
}

}  // namespace rollcall::test::tidy_test
