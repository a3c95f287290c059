#include "viz/rows/group_families.h"
#include "tests/catch.h"

namespace rollcall::viz::group_families_test {

namespace {

Report with_groups(std::vector<ReportGroup> groups) {
  Report report;
  report.groups = std::move(groups);
  return report;
}

}  // namespace

TEST_CASE("the groups of a mesh's dimension are a family") {
  const Report report = with_groups({{"world", RankSet::range(0, 3)},
                                     {"dp0", RankSet{0, 2}},
                                     {"dp1", RankSet{1, 3}},
                                     {"tp0", RankSet{0, 1}}});
  const GroupFamilies families(report);
  CHECK(families.of("dp0") == "dp");
  CHECK(families.of("dp1") == "dp");
  CHECK(families.of("tp0") == "tp0");  // the only one
  CHECK(families.of("world") == "world");
  CHECK(families.of("unknown") == "unknown");
}

TEST_CASE("groups with a common member are no family") {
  const GroupFamilies families(with_groups({{"g1", RankSet{0, 1}}, {"g2", RankSet{1, 2}}}));
  CHECK(families.of("g1") == "g1");
}

TEST_CASE("names that are nothing but numbers are no family") {
  const GroupFamilies families(with_groups({{"1", RankSet{0}}, {"2", RankSet{1}}}));
  CHECK(families.of("1") == "1");
}

}  // namespace rollcall::viz::group_families_test
