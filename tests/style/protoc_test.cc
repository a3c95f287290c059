// Reads Perfetto traces with Google's own protobuf compiler, if it is installed (Debian's protobuf-compiler).

#include <cstdlib>
#include <regex>
#include <string>

#include "tests/catch.h"
#include "tests/count.h"
#include "tests/shell.h"

namespace rollcall::test::protoc_test {

TEST_CASE("protoc decodes a .pftrace and knows every field of it", "[cli][fiber][trace]") {
  if (std::system("protoc --version > /dev/null 2>&1") != 0) {
    WARN("skipped: no protoc (Debian's package protobuf-compiler)");
    return;
  }
  const Shell shell;
  const Outcome run =
      shell.rollcall("run " ROLLCALL_SOURCE_DIR "/scenarios/uneven_inputs.json -q --trace t.pftrace");
  REQUIRE(run.code == 0);
  const std::string decode = "protoc --decode=Trace -I " ROLLCALL_SOURCE_DIR
                             "/tests/data/perfetto track_event.proto < " +
                             shell.path("t.pftrace").string() + " > " + shell.path("t.txt").string();
  REQUIRE(std::system(decode.c_str()) == 0);
  const std::string text = contents(shell.path("t.txt"));
  CHECK_FALSE(std::regex_search(text, std::regex("(^|\n) *[0-9]+[:{ ]")));  // a field without a name
  const std::ptrdiff_t begun = count(text, "TYPE_SLICE_BEGIN");
  CHECK(begun == 23 + 23 + 1);                        // computing, the calls, and what rank 0 did instead
  CHECK(begun - count(text, "TYPE_SLICE_END") == 3);  // these never returned
  CHECK(count(text, "process_name: \"rank ") == 4);
}

}  // namespace rollcall::test::protoc_test
