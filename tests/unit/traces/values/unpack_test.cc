#include "traces/values/unpack.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/contents.h"
#include "tests/unit/traces/folder.h"
#include "traces/formats/trace_reader.h"
#include "traces/values/file_bytes.h"
#include "traces/values/value.h"

namespace rollcall::traces::unpack_test {
namespace {

using rollcall::test::contents;
namespace fs = std::filesystem;
using test::Folder;

const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data";

// Returns the error when `bytes` do not unpack into `bytes_max`.
std::string complaint_about(std::string_view bytes, std::size_t bytes_max = std::size_t{1} << 20) {
  std::string into;
  try {
    unpack(bytes, into, bytes_max);
  } catch (const BadFile& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("dumps packed with zstd are read like plain ones, or refused by name", "[flight-recorder]") {
  const ReadResult packed = read_recordings({(data / "packed").string()});
  if (!reads_zstd()) {
    REQUIRE(packed.problems.size() == 2);
    CHECK_THAT(packed.problems.front().message, Contains("zstd") && Contains("built without"));
    return;
  }
  CHECK(packed.problems.empty());
  REQUIRE(packed.job.ranks.size() == 2);
  const ReadResult plain = read_recordings({(data / "flight_recorder/size_mismatch_4/pickle").string()});
  CHECK(packed.job.ranks[0].records == plain.job.ranks[1].records);
  CHECK(packed.job.ranks[1].records.size() == plain.job.ranks[2].records.size());  // of two frames
}

TEST_CASE("packed files that are damaged, cut off or too large are refused with their place",
          "[flight-recorder]") {
  const Folder folder;
  const std::string text(300'000, 'x');
  folder.write_packed("x.gz", text);
  std::vector<std::string> packed = {contents(folder.path("x.gz"))};
  if (reads_zstd()) {
    packed.push_back(contents(data / "packed/nccl_trace_rank_1.zst"));
  }
  for (const std::string& whole : packed) {
    CHECK(complaint_about(whole).empty());
    CHECK_THAT(complaint_about(whole, 1000), Contains("decompresses to more than"));
    for (std::size_t size = 5; size < whole.size(); size += 1 + size / 3) {
      CHECK_THAT(complaint_about(std::string_view(whole).substr(0, size)), Contains("truncated"));
    }
    std::string damaged = whole;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
    damaged[3] = '\x7f';
    CHECK_FALSE(complaint_about(damaged).empty());
  }
}

TEST_CASE("a gzip file of several members is all of them, without the padding behind", "[flight-recorder]") {
  const Folder folder;
  folder.write_packed("a", "first ");
  folder.write_packed("b", "second");
  const std::string both = contents(folder.path("a")) + contents(folder.path("b")) + std::string(16, '\0');
  std::string into;
  CHECK(unpack(both, into, 100) == "first second");
  CHECK(beginning_of_packed(both, 3) == "fir");
  CHECK(beginning_of_packed(std::string_view(both).substr(0, both.size() / 2), 100).starts_with("f"));
}

TEST_CASE("packed traces are told by what is in them", "[traces]") {
  const Folder folder;
  folder.write_packed("t", R"({"traceEvents": []})");
  CHECK(looks_like_trace(folder.path("t")));
  folder.write("u", R"({"traceEvents": []})");
  CHECK(looks_like_trace(folder.path("u")));
}

}  // namespace rollcall::traces::unpack_test
