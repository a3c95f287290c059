#include <string>
#include <vector>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/source.h"
#include "tests/catch.h"

namespace rollcall::scenario::json_reader_test {
namespace {

// Returns the first error in a text, as "line:column: message".
std::string syntax_error(const std::string& text) {
  const SourceText source("a.json", text);
  try {
    read_json(source);
  } catch (const InvalidScenario& invalid) {
    const Diagnostic& first = invalid.diagnostics().front();
    return std::to_string(first.line) + ":" + std::to_string(first.column) + ": " + first.message;
  }
  return "none";
}

// Returns "offset pointer" for every value, in order.
std::vector<std::string> places(const Json& value) {
  std::vector<std::string> found{std::to_string(value.offset()) + " " + value.pointer()};
  for (Json child : value.children()) {
    const auto inside = places(child);
    found.insert(found.end(), inside.begin(), inside.end());
  }
  return found;
}

}  // namespace

TEST_CASE("every value knows where it stands", "[scenarios]") {
  const SourceText source("a.json", R"(
// a comment, with "quotes", and [brackets]
{ "a" : [ 1 , -2.5e3,/* , */ "x\"y" ], "b/~": { "ü": true, "n": null } , "big": 1e2 }
)");
  const JsonTree tree = read_json(source);
  const auto at = [&](const char* text) { return std::to_string(source.text().find(text)); };
  CHECK(places(tree.root()) ==
        std::vector<std::string>{at("{ \"a\"") + " ", at("[ 1") + " /a", at("1 ,") + " /a/0",
                                 at("-2.5") + " /a/1", at("\"x") + " /a/2", at("{ \"ü") + " /b~1~0",
                                 at("true") + " /b~1~0/ü", at("null") + " /b~1~0/n", at("1e2") + " /big"});
  CHECK(tree.root().find("b/~")->key_offset() == source.text().find("\"b/~"));
}

TEST_CASE("values keep their types", "[scenarios]") {
  const SourceText source("a.json", R"([null, true, 7, -7, 0.5, "tab\tü", 1e300, {"k": []}])");
  const JsonTree tree = read_json(source);
  std::vector<Json> values;
  for (Json value : tree.root().children()) {
    values.push_back(value);
  }
  REQUIRE(values.size() == 8);
  CHECK(tree.root().size() == 8);
  CHECK(values[0].is(JsonType::null));
  CHECK(values[1].boolean());
  CHECK(values[2].integer() == 7);
  CHECK(values[3].integer() == -7);
  CHECK(values[4].real() == 0.5);
  CHECK(values[5].text() == "tab\tü");
  CHECK(values[6].real() == 1e300);
  CHECK(values[7].find("k")->is(JsonType::array));
  CHECK_FALSE(values[7].find("missing"));
}

TEST_CASE("a whole number beyond 64 bits is an error, not another number", "[scenarios]") {
  CHECK(syntax_error("[9223372036854775807, -9223372036854775808]") == "none");
  CHECK(syntax_error("[9223372036854775808]") == "1:2: this integer does not fit in 64 bits");
  CHECK(syntax_error("[-9223372036854775809]") == "1:2: this integer does not fit in 64 bits");
  CHECK(syntax_error("[1, 18446744073709551616]") == "1:5: this integer does not fit in 64 bits");
  CHECK(syntax_error(R"({"a": {"b": [1e99, 99999999999999999999, )") ==
        "1:20: this integer does not fit in 64 bits");  // and the file ends early
}

TEST_CASE("a byte order mark is no part of the text", "[scenarios]") {
  const SourceText source("a.json", "\xef\xbb\xbf{\"a\": 1}");
  CHECK(read_json(source).root().find("a")->offset() == 9);
}

TEST_CASE("a duplicate key is an error at its second place", "[scenarios]") {
  const SourceText source("a.json", "{\"x\": {\"a\": 1,\n \"b\": 2,\n \"a\": 3}}");
  try {
    read_json(source);
    FAIL("accepted");
  } catch (const InvalidScenario& invalid) {
    REQUIRE(invalid.diagnostics().size() == 1);
    const Diagnostic& found = invalid.diagnostics().front();
    CHECK(found.pointer == "/x/a");
    CHECK(found.line == 3);
    CHECK(found.column == 2);
    CHECK(found.message == "duplicate key \"a\"; it is already on line 1");
  }
  CHECK(syntax_error(R"({"a": 1, "\u0061": 2})") == "1:10: duplicate key \"a\"; it is already on line 1");
}

TEST_CASE("ten megabytes of brackets are an error, not a crash", "[scenarios]") {
  CHECK(syntax_error(std::string(10'000'000, '[')) == "1:201: brackets are nested deeper than 200 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"a\":";
  }
  CHECK(syntax_error(objects) == "1:1001: brackets are nested deeper than 200 levels");
  CHECK(syntax_error(std::string(200, '[') + std::string(200, ']')) == "none");
}

TEST_CASE("common mistakes are called by their name", "[scenarios]") {
  CHECK(syntax_error("{\"a\": [1, 2,\n]}") == "1:12: trailing comma: JSON does not allow one before ']'");
  CHECK(syntax_error("{\"a\": 1,}") == "1:8: trailing comma: JSON does not allow one before '}'");
  CHECK(syntax_error("{\"a\": 1 \"b\": 2}") == "1:8: expected ',' or '}' after this value");
  CHECK(syntax_error("[1 2]") == "1:3: expected ',' or ']' after this value");
  CHECK(syntax_error("{'a': 1}") == "1:2: keys are written in double quotes");
  CHECK(syntax_error("{a: 1}") == "1:2: keys are written in double quotes: \"a\"");
  CHECK(syntax_error("{\"a\": 'x'}") == "1:7: strings are written in double quotes");
  CHECK(syntax_error("{\"a\": True}") == "1:7: True is written true in JSON");
  CHECK(syntax_error("{\"a\": None}") == "1:7: None is written null in JSON");
  CHECK(syntax_error("{\"a\": NaN}") == "1:7: JSON has no NaN; write \"nan\", a string");
  CHECK(syntax_error("{\"a\": nccl}") ==
        "1:7: nccl is not a JSON value; strings are written in double quotes: \"nccl\"");
  CHECK(syntax_error("{\"a\" 1}") == "1:6: expected ':' between a key and its value");
  CHECK(syntax_error("{\"a\": }") == "1:7: a value is missing before '}'");
  CHECK(syntax_error("[1,,2]") == "1:4: a value is missing before ','");
  CHECK(syntax_error("{\"a\": [1}") == "1:9: '}' cannot close the array that starts on line 1: expected ']'");
  CHECK(syntax_error("{} {}") == "1:4: text after the end of the scenario; a file holds one JSON object");
  CHECK(syntax_error("{ # no\n}") == "1:3: comments start with // or are enclosed in /* and */");
  CHECK(syntax_error("[1: 2]") == "1:3: unexpected ':'; keys and values go inside { }, not [ ]");
}

TEST_CASE("bad numbers and strings are called by their name", "[scenarios]") {
  CHECK(syntax_error("[04]") == "1:2: JSON numbers have no leading zeros");
  CHECK(syntax_error("[0x10]") == "1:2: JSON has no hexadecimal numbers");
  CHECK(syntax_error("[+1]") == "1:2: JSON numbers have no leading '+'");
  CHECK(syntax_error("[.5]") == "1:2: JSON numbers start with a digit: write 0.5, not .5");
  CHECK(syntax_error("[1e999]") == "1:2: the number is too large");
  CHECK(syntax_error("[1.]") == "1:2: 1. is not a JSON number");
  CHECK(syntax_error("[\"a\nb\"]") ==
        "1:2: this string is not closed on its line; write a line break inside a string as \\n");
  CHECK(syntax_error("[\"a\tb\"]") ==
        "1:4: write a control character inside a string as an escape, such as \\t for a tab");
  CHECK(syntax_error("[\"C:\\data\"]") == "1:5: \\d is not a JSON escape; write a backslash as \\\\");
  CHECK(syntax_error("[\"\\ud800\"]") ==
        "1:2: invalid \\u escape in this string: \\u needs four hexadecimal digits, and surrogates come in "
        "pairs");
  CHECK(syntax_error("[\"abc") == "1:2: this string is never closed");
}

TEST_CASE("a file that stops early says what is open", "[scenarios]") {
  CHECK(syntax_error("{\n\"a\": [1,\n2") ==
        "3:2: the file ends inside the array that starts on line 2: a ']' is missing");
  CHECK(syntax_error("{\"a\":") ==
        "1:6: the file ends inside the object that starts on line 1: a '}' is missing");
  CHECK(syntax_error("// only this\n") == "2:1: the file has no JSON value, only whitespace and comments");
  CHECK(syntax_error("{ /* open") == "1:3: this comment is never closed: */ is missing");
}

TEST_CASE("a broken file also tells of duplicate keys before the break", "[scenarios]") {
  const SourceText source("a.json", "{\"o\": {\"a\": 1, \"a\": 2},,}");
  try {
    read_json(source);
    FAIL("accepted");
  } catch (const InvalidScenario& invalid) {
    REQUIRE(invalid.diagnostics().size() == 2);
    CHECK(invalid.diagnostics()[0].pointer == "/o/a");
    CHECK(invalid.diagnostics()[1].message == "a member is missing before ','");
  }
}

}  // namespace rollcall::scenario::json_reader_test
