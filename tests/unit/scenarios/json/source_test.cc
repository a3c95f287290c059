#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "sim/base/utf8.h"
#include "tests/catch.h"

namespace rollcall::scenario::source_test {
namespace {

std::string refusal(const std::string& text) {
  try {
    check_source("a.json", text);
  } catch (const InvalidScenario& invalid) {
    return invalid.what();
  }
  return "accepted";
}

std::string refusal_of_file(const std::string& path) {
  try {
    read_source(path);
  } catch (const InvalidScenario& invalid) {
    return invalid.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("positions count lines and characters from 1", "[scenarios]") {
  const SourceText source("a.json", "ab\nüx\r\n\nlast");
  CHECK(source.position(0) == Position{1, 1});
  CHECK(source.position(1) == Position{1, 2});
  CHECK(source.position(2) == Position{1, 3});
  CHECK(source.position(3) == Position{2, 1});
  CHECK(source.position(5) == Position{2, 2});  // ü takes two bytes
  CHECK(source.position(8) == Position{3, 1});
  CHECK(source.position(13) == Position{4, 5});  // the end
}

TEST_CASE("an excerpt shows the line and a caret under the character", "[scenarios]") {
  const SourceText source("a.json", "first\n\t\"ü\": 12\r\n");
  CHECK(source.excerpt(source.text().find("12")) == "  \t\"ü\": 12\n  \t     ^");
  CHECK(source.excerpt(0) == "  first\n  ^");
}

TEST_CASE("an excerpt of a long line is cut around the caret", "[scenarios]") {
  const SourceText source("a.json", std::string(500, 'x') + "!" + std::string(500, 'y'));
  const std::string excerpt = source.excerpt(500);
  CHECK(excerpt ==
        "  …" + std::string(60, 'x') + "!" + std::string(59, 'y') + "…\n" + std::string(63, ' ') + "^");
}

TEST_CASE("an excerpt blanks control characters and stray bytes", "[scenarios]") {
  const SourceText source("a.json", "a\x1b[31m\xff|");
  CHECK(source.excerpt(7) == "  a [31m?|\n         ^");
}

TEST_CASE("what is no text is refused with a reason", "[scenarios]") {
  CHECK(refusal("") == "a.json: error: the file is empty");
  CHECK(refusal("\xff\xfe{") == "a.json: error: the file is UTF-16; save it as UTF-8");
  CHECK(refusal("{\n\"\xe9\"}") == "a.json:2:2: error: byte 0xe9 is not valid UTF-8\n  \"?\"}\n   ^");
  CHECK(refusal(std::string("{}\0", 3)) ==
        "a.json:1:3: error: a NUL byte: this is not a text file\n  {} \n    ^");
  CHECK(refusal("{}") == "accepted");
}

TEST_CASE("files that cannot be read are refused with a reason", "[scenarios]") {
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK(refusal_of_file("no/such/file.json") ==
        "no/such/file.json: error: cannot open the file: No such file or directory");
  CHECK(refusal_of_file("train.py") ==
        "train.py: error: a Python script is not a scenario; `rollcall record -n 4 train.py` records it");
  CHECK(refusal_of_file(folder) ==
        folder + ": error: this is a directory, not a scenario file; `rollcall diagnose " + folder +
            "` reads a job's dumps");
}

TEST_CASE("a file is read as it stands", "[scenarios]") {
  const std::string path = (std::filesystem::temp_directory_path() / "rollcall_source_test.json").string();
  std::ofstream(path, std::ios::binary) << "{\r\n}\n";
  CHECK(read_source(path).text() == "{\r\n}\n");
  CHECK(read_source(path).name() == path);
  std::remove(path.c_str());
}

TEST_CASE("UTF-8 is valid where RFC 3629 says so", "[scenarios]") {
  for (const char* good : {"", "plain", "ü€😀", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    CHECK(first_invalid_utf8(good) == std::string_view(good).size());
  }
  // A lone continuation byte, overlong forms, a surrogate, a code point that is too large, a truncated one.
  for (const char* bad :
       {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"}) {
    CHECK(first_invalid_utf8(std::string("12345678ab") + bad) == 10);
  }
  CHECK(count_characters("ü€😀a") == 4);
}

}  // namespace rollcall::scenario::source_test
