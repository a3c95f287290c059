// Reads every file that the fuzzers have kept once more: an input that once crashed a reader must not do so again.
// docs/fuzzing.md says where the files come from.

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/fuzz/targets.h"

namespace rollcall::fuzz::corpus_test {
namespace {

using rollcall::test::contents;
namespace fs = std::filesystem;

const fs::path corpus = fs::path(ROLLCALL_SOURCE_DIR) / "tests/corpus";

}  // namespace

TEST_CASE("every reader survives the files that fuzzers have kept", "[corpus]") {
  for (const Target& target : targets) {
    std::size_t files = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(corpus / target.name)) {
      CAPTURE(entry.path().string());
      CHECK_NOTHROW(target.read(contents(entry.path())));
      ++files;
    }
    CAPTURE(target.name);
    CHECK(files > 0);
  }
}

TEST_CASE("every folder of the corpus belongs to a reader", "[corpus]") {
  std::set<std::string> names;
  for (const Target& target : targets) {
    names.insert(target.name);
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(corpus)) {
    CHECK(names.contains(entry.path().filename().string()));
  }
}

// Inputs for which no fuzzer is needed.
TEST_CASE("every reader survives nothing, one byte and much of the same", "[corpus]") {
  for (const Target& target : targets) {
    CAPTURE(target.name);
    CHECK_NOTHROW(target.read(""));
    for (const char byte : {'\0', '\x80', '{', '[', '(', '"', '-', '9', '\xff'}) {
      CHECK_NOTHROW(target.read(std::string(1, byte)));
      CHECK_NOTHROW(target.read(std::string(100'000, byte)));
    }
  }
}

}  // namespace rollcall::fuzz::corpus_test
