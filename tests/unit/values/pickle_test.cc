#include "sim/values/pickle.h"

#include <random>
#include <string>

#include "tests/catch.h"

namespace rollcall::values::pickle_test {
namespace {

using namespace std::string_literals;

const std::string header = "\x80\x02"s;

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return bytes;
}

std::string text(const std::string& value) {
  return "X" + number(static_cast<std::uint32_t>(value.size())) + value;
}

struct Failure {
  std::size_t offset = 0;
  std::string message;
};

// Returns the error of reading `bytes`; its message is empty if there is none.
Failure failure_of(const std::string& bytes) {
  Arena arena(std::size_t{64} << 20);
  try {
    read_pickle(bytes, arena);
  } catch (const BadFile& error) {
    return {error.offset, error.what()};
  }
  return {};
}

}  // namespace

TEST_CASE("a pickle of protocol 2 becomes plain values", "[pickle]") {
  Arena arena(std::size_t{1} << 20);
  // {"a": [1, -2, 700, 2.5, None, True], "b": ("x", "x")}, with the last text from the memo.
  const std::string bytes = header + "}q\x00("s + text("a") +
                            "q\x01](K\x01J\xfe\xff\xff\xffM\xbc\x02G@\x04"s + std::string(6, '\0') +
                            "N\x88"s + "e" + text("b") + text("x") + "q\x02h\x02\x86u."s;
  const Value value = read_pickle(bytes, arena);
  const Value* list = find(value, "a");
  REQUIRE(list != nullptr);
  REQUIRE(list->node->size == 6);
  CHECK(list->node->items[0].integer == 1);
  CHECK(list->node->items[1].integer == -2);
  CHECK(list->node->items[2].integer == 700);
  CHECK(list->node->items[3].real == 2.5);
  CHECK(list->node->items[4].is(Value::Kind::none));
  CHECK(list->node->items[5].integer == 1);
  const Value* pair = find(value, "b");
  REQUIRE(pair != nullptr);
  REQUIRE(pair->node->size == 2);
  CHECK(pair->node->items[1].as_text() == "x");
}

TEST_CASE("what Python writes when it saves a dump again is read too", "[pickle]") {
  Arena arena(std::size_t{1} << 20);
  // Protocol 4: FRAME, SHORT_BINUNICODE, MEMOIZE, SETITEM, APPEND, LONG1.
  const std::string simple =
      "}\x94\x8c\x01k\x94]\x94K\x07"
      "a\x8a\x02\x00\x80"
      "as."s;
  const std::string bytes =
      "\x80\x04\x95"s + static_cast<char>(simple.size()) + std::string(7, '\0') + simple;
  const Value value = read_pickle(bytes, arena);
  const Value* list = find(value, "k");
  REQUIRE(list != nullptr);
  REQUIRE(list->node->size == 2);
  CHECK(list->node->items[0].integer == 7);
  CHECK(list->node->items[1].integer == -32768);
}

TEST_CASE("a pickle that would run code is refused where it tries", "[pickle]") {
  for (const auto& [opcode, name] :
       std::vector<std::pair<std::string, std::string>>{{"cos\nsystem\n", "GLOBAL"},
                                                        {"\x93", "STACK_GLOBAL"},
                                                        {"R", "REDUCE"},
                                                        {"b", "BUILD"},
                                                        {"\x81", "NEWOBJ"},
                                                        {"i", "INST"},
                                                        {"o", "OBJ"},
                                                        {"Q", "BINPERSID"}}) {
    const Failure failure = failure_of(header + "N" + opcode + ".");
    CAPTURE(name);
    CHECK(failure.offset == 3);
    CHECK(failure.message.find("opcode " + name + " would run code") != std::string::npos);
  }
}

TEST_CASE("damaged pickles are errors with a place", "[pickle]") {
  CHECK(failure_of("").message.find("truncated") != std::string::npos);
  CHECK(failure_of("\x80\x07N.").message.find("protocol 7") != std::string::npos);
  CHECK(failure_of(header + "X\xff\xff\xff\x7f" + "abc").offset == 7);          // a text longer than the file
  CHECK(failure_of(header + "N0.").message.find("0x30") != std::string::npos);  // POP never occurs
  CHECK(failure_of(header + "h\x05.").message.find("memo 5") != std::string::npos);
  CHECK(failure_of(header + "e.").offset == 2);             // APPENDS without MARK
  CHECK(failure_of(header + "(K\x01" + "e.").offset == 5);  // ... without a list
  CHECK(failure_of(header + "}(N" + "u.").message == "a key without a value");
  CHECK(failure_of(header + "NN.").message.find("2 values") != std::string::npos);
  CHECK(failure_of(header + "a.").offset == 2);
  CHECK(failure_of(header + "(q\x01N.").message.find("not created") != std::string::npos);
  CHECK(failure_of(header + "\x8a\x09" + std::string(9, '\x01') + ".").message.find("9 bytes") !=
        std::string::npos);
}

TEST_CASE("a memo index cannot make the reader allocate", "[pickle]") {
  CHECK(failure_of(header + "Nr\xff\xff\xff\xff.").message.find("memo index 4294967295") !=
        std::string::npos);
}

TEST_CASE("lists that hold each other a billion times over stay as small as their file", "[pickle]") {
  // Each list contains the one before ten times.
  std::string bytes = header + "(]q"s + '\0';
  for (int level = 1; level < 100; ++level) {
    bytes += "](";
    for (int i = 0; i < 10; ++i) {
      bytes += "h"s + static_cast<char>(level - 1);
    }
    bytes += "eq"s + static_cast<char>(level);
  }
  bytes += "t.";
  CHECK(failure_of(bytes).message.empty());
}

TEST_CASE("no file of random opcodes breaks the reader", "[pickle]") {
  std::mt19937 chance(7);
  const std::string opcodes = "(.GJKMNX]})aehjqrstu\x80\x85\x86\x87\x88\x89\x8a\x8c\x8d\x94\x95"s;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = header;
    const std::size_t length = chance() % 64;
    for (std::size_t i = 0; i < length; ++i) {
      bytes += chance() % 4 == 0 ? static_cast<char>(chance()) : opcodes[chance() % opcodes.size()];
    }
    failure_of(bytes + ".");
  }
  SUCCEED("every one of them ended in a value or in BadFile");
}

}  // namespace rollcall::values::pickle_test
