#include <string>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "sim/base/utf8.h"
#include "tests/catch.h"

namespace rollcall::scenario::diagnostic_test {

TEST_CASE("a diagnostic prints as file, place, pointer, message, suggestion and excerpt", "[scenarios]") {
  const SourceText source("dir/a.json", "{\n  \"wrold\": 1}");
  Diagnostics diagnostics(source);
  diagnostics.error(4, "/wrold", "unknown key \"wrold\"", "world");
  try {
    diagnostics.throw_if_any();
    FAIL("nothing was thrown");
  } catch (const InvalidScenario& invalid) {
    CHECK(std::string(invalid.what()) ==
          "dir/a.json:2:3: error: /wrold: unknown key \"wrold\" (did you mean \"world\"?)\n"
          "    \"wrold\": 1}\n"
          "    ^");
    REQUIRE(invalid.diagnostics().size() == 1);
    CHECK(invalid.diagnostics()[0].line == 2);
    CHECK(invalid.diagnostics()[0].column == 3);
    CHECK(invalid.diagnostics()[0].suggestion == "world");
  }
}

TEST_CASE("diagnostics come in the order of the file", "[scenarios]") {
  const SourceText source("a.json", "0123\n567");
  Diagnostics diagnostics(source);
  diagnostics.error(6, "", "third");
  diagnostics.error(2, "", "first");
  diagnostics.error(5, "", "second");
  try {
    diagnostics.throw_if_any();
  } catch (const InvalidScenario& invalid) {
    REQUIRE(invalid.diagnostics().size() == 3);
    CHECK(invalid.diagnostics()[0].message == "first");
    CHECK(invalid.diagnostics()[1].message == "second");
    CHECK(invalid.diagnostics()[2].message == "third");
  }
}

TEST_CASE("twenty diagnostics are enough", "[scenarios]") {
  const SourceText source("a.json", "x");
  Diagnostics diagnostics(source);
  int number = 0;
  const auto report_for_ever = [&] {
    while (true) {
      diagnostics.error(0, "", "number " + std::to_string(number++));
    }
  };
  try {
    report_for_ever();
  } catch (const InvalidScenario& invalid) {
    CHECK(invalid.diagnostics().size() == 20);
    CHECK(std::string(invalid.what()).ends_with("a.json: error: more may follow; the first 20 are shown"));
  }
}

TEST_CASE("the same thing is told once", "[scenarios]") {
  const SourceText source("a.json", "xy");
  Diagnostics diagnostics(source);
  diagnostics.error(0, "", "wrong");
  diagnostics.error(1, "", "wrong");
  diagnostics.error(0, "", "wrong");
  try {
    diagnostics.throw_if_any();
    FAIL("nothing was thrown");
  } catch (const InvalidScenario& invalid) {
    CHECK(invalid.diagnostics().size() == 2);
  }
}

TEST_CASE("a key of any length makes a message of some length", "[scenarios]") {
  const SourceText source("a.json", "x");
  Diagnostics diagnostics(source);
  std::string key;
  for (int i = 0; i < 1'000'000; ++i) {
    key += "é";
  }
  diagnostics.error(0, "/" + key, "unknown key " + key);
  try {
    diagnostics.throw_if_any();
    FAIL("nothing was thrown");
  } catch (const InvalidScenario& invalid) {
    const std::string text = invalid.what();
    CHECK(text.size() < 1000);
    CHECK(text.find("éé…") != std::string::npos);
    CHECK(first_invalid_utf8(text) == text.size());  // cut between characters
  }
}

TEST_CASE("nothing is thrown when nothing is wrong", "[scenarios]") {
  const SourceText source("a.json", "x");
  Diagnostics diagnostics(source);
  CHECK(diagnostics.empty());
  CHECK_NOTHROW(diagnostics.throw_if_any());
}

}  // namespace rollcall::scenario::diagnostic_test
