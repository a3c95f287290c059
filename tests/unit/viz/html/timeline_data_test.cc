#include "viz/html/timeline_data.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/unit/viz/recorded_calls.h"
#include "tests/unit/viz/sample_reports.h"

namespace rollcall::viz::timeline_data_test {

namespace {

using Json = nlohmann::json;

// The data that the page's script reads: the header, and the numbers after it.
struct Unpacked {
  Json header;
  std::vector<std::uint64_t> numbers;

  explicit Unpacked(const Report& report) {
    const std::string data = timeline_data(report);
    const std::size_t newline = data.find('\n');
    header = Json::parse(data.substr(0, newline));
    std::uint64_t value = 0;
    int shift = 0;
    for (const char byte : data.substr(newline + 1)) {
      value |= std::uint64_t{static_cast<unsigned char>(byte) & 0x7fU} << shift;
      shift += 7;
      if (static_cast<unsigned char>(byte) < 0x80) {
        numbers.push_back(value);
        value = 0;
        shift = 0;
      }
    }
  }
};

using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("base64 is as RFC 4648 has it") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
  CHECK(base64("\xff\xfe\xfd") == "//79");
}

TEST_CASE("slices are packed as differences, and what never returned has no duration") {
  Report report = samples::completed(1);
  samples::record(report, {.rank = 0, .seq = 0, .start = 100, .end = 300});
  samples::record(report, {.rank = 0, .seq = 1, .start = 400});
  const Unpacked data(report);
  // Slices: 100, 1 + 200, call 0, seq +0; 300, open, call 0, seq +1.
  // Arrivals: seq +0 by rank 0 at +100, seq +1 at +300.
  CHECK(data.numbers == Numbers{100, 201, 0, 0, 300, 0, 0, 2, 0, 0, 200, 1, 0, 600});
  CHECK(data.header["calls"][0] == Json::array({0, "all_reduce", "world", "float32 x 4", "SUM", "", "", 0}));
  CHECK(data.header["groups"] == Json::array({Json::array({"world", 2})}));
}

TEST_CASE("numbers of calls that leave gaps take no more room than those without") {
  Report report = samples::completed(1);
  samples::record(report, {.rank = 0, .seq = 7, .start = 100, .end = 300});
  samples::record(report, {.rank = 0, .seq = std::int64_t{1} << 60, .start = 400});
  const Unpacked data(report);
  CHECK(data.header["groups"] == Json::array({Json::array({"world", 2})}));
  CHECK(data.numbers.size() == 14);
}

TEST_CASE("ranks that did the same at the same times are packed once") {
  Report report = samples::missing_rank(1000);
  samples::record_common(report, 5);
  for (Rank rank = 1; rank < 1000; ++rank) {
    samples::record(report, {.rank = rank, .seq = 5, .start = 50});
  }
  const Unpacked data(report);
  CHECK(data.header["stories"].size() == 2);
  CHECK(data.header["ranks"].size() == 1000);
  CHECK(data.header["ranks"][0] == 0);
  CHECK(data.header["ranks"][999] == 1);
}

TEST_CASE("ranks that did the same on their own groups of a mesh fold") {
  Report report = samples::completed(4);
  report.groups = {{"world", RankSet::range(0, 3)}, {"dp0", RankSet{0, 2}}, {"dp1", RankSet{1, 3}}};
  for (Rank rank = 0; rank < 4; ++rank) {
    samples::record(report,
                    {.rank = rank, .seq = 0, .start = 10, .end = 20, .group = rank % 2 == 0 ? "dp0" : "dp1"});
  }
  const Unpacked data(report);
  CHECK(data.header["stories"].size() == 2);
  CHECK(data.header["stories"][0]["fold"] == data.header["stories"][1]["fold"]);
}

TEST_CASE("a culprit is told apart from ranks that are where it is") {
  Report report = samples::missing_rank(4);
  samples::record_common(report, 2);
  report.ranks.front().ranks = RankSet{0, 1};
  report.ranks.back().ranks = RankSet{2, 3};
  const Unpacked data(report);
  REQUIRE(data.header["states"].size() == 3);
  CHECK(data.header["states"][0]["culprit"] == true);
  CHECK(data.header["states"][0]["ranks"] == Json::array({Json::array({0, 0})}));
  CHECK(data.header["states"][1]["culprit"] == false);
  CHECK(data.header["states"][1]["ranks"] == Json::array({Json::array({1, 1})}));
}

TEST_CASE("ranks that did the same at other times fold") {
  Report report = samples::completed(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    samples::record(report, {.rank = rank, .start = rank, .end = 10, .numel = rank == 2 ? 8 : 4});
  }
  const Json stories = Unpacked(report).header["stories"];
  REQUIRE(stories.size() == 3);
  CHECK(stories[0]["fold"] == stories[1]["fold"]);
  CHECK(stories[0]["fold"] != stories[2]["fold"]);
}

TEST_CASE("messages carry how far away their other end is, and an arrow from the later one") {
  Report report = samples::completed(3);
  samples::record_message(report, 0, 2, "send", 10, 40);
  samples::record_message(report, 2, 0, "recv", 20, 40);
  samples::record_message(report, 1, -1, "recv", 5);
  const Unpacked data(report);
  CHECK(data.header["arrows"] == 1);
  // By rank: +2 is 1 + 4, an unknown rank is 0, -2 is 1 + 3; then the arrow from 2 to 0, a nanosecond after 20.
  CHECK(data.numbers == Numbers{10, 31, 0, 0, 5, 5, 0, 1, 0, 0, 20, 21, 1, 0, 4, 2, 0, 21});
}

TEST_CASE("the header says where the run came apart and who is to blame") {
  Report report = samples::missing_rank(4);
  samples::record_common(report, 5);
  samples::record(report, {.rank = 1, .seq = 5, .start = 77});
  const Json header = Unpacked(report).header;
  CHECK(header["broken"]["group"] == "world");
  CHECK(header["broken"]["seq"] == 5);
  CHECK(header["broken"]["time"] == 77);
  CHECK(header["broken"]["found"] == true);
  CHECK(header["broken"]["missing"] == Json({{0, 0}}));
  CHECK(header["broken"]["text"] == "no all_reduce #5");
  CHECK(header["states"][0]["ranks"] == Json::array({Json::array({0, 0})}));
  CHECK(header["states"][0]["culprit"] == true);
}

TEST_CASE("names in a timeline are cut and harmless") {
  Report report = samples::completed(1);
  const std::string name = "\u202e" + std::string(10'000, 'x');
  samples::record(report, {.rank = 0, .start = 0, .end = 1, .label = name});
  const std::string label = Unpacked(report).header["calls"][0][5];
  CHECK_THAT(label, StartsWith("\\u202exxx"));
  CHECK(label.size() < 500);
}

}  // namespace rollcall::viz::timeline_data_test
