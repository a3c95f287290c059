#include "sim/report/rank_set.h"
#include "tests/catch.h"

namespace rollcall::rank_set_test {

TEST_CASE("a rank set prints as ranges, whatever the order of insertion") {
  CHECK(to_string(RankSet{8, 0, 2, 1, 3}) == "0-3,8");
  CHECK(to_string(RankSet::of({5, 5, 4, 5})) == "4-5");
  CHECK(to_string(RankSet::range(0, 999)) == "0-999");
  CHECK(to_string(RankSet{}) == "none");
  CHECK(RankSet::range(3, 2).empty());
}

TEST_CASE("inserting joins ranges that come to touch") {
  RankSet ranks{0, 2, 4};
  ranks.insert(3);
  CHECK(to_string(ranks) == "0,2-4");
  ranks.insert(1);
  CHECK(to_string(ranks) == "0-4");
  ranks.insert(2);
  CHECK(ranks.size() == 5);
}

TEST_CASE("inserting a set is the union") {
  RankSet ranks = RankSet::range(10, 19);
  ranks.insert(RankSet{0, 5, 9, 15, 20, 30});
  CHECK(to_string(ranks) == "0,5,9-20,30");
  ranks.insert(ranks);
  CHECK(to_string(ranks) == "0,5,9-20,30");
}

TEST_CASE("a rank set knows its members") {
  const RankSet ranks{0, 1, 2, 7};
  CHECK(ranks.size() == 4);
  CHECK(ranks.first() == 0);
  CHECK(ranks.contains(0));
  CHECK(ranks.contains(2));
  CHECK(ranks.contains(7));
  CHECK_FALSE(ranks.contains(3));
  CHECK_FALSE(ranks.contains(8));
  CHECK_FALSE(RankSet{}.contains(0));
  CHECK(ranks.to_vector() == std::vector<Rank>{0, 1, 2, 7});
  CHECK(ranks == RankSet::of({7, 2, 1, 0}));
}

TEST_CASE("the difference of rank sets cuts holes") {
  const RankSet ten = RankSet::range(0, 9);
  CHECK(to_string(difference(ten, {0, 4, 5, 9})) == "1-3,6-8");
  CHECK(difference(ten, ten).empty());
  CHECK(difference(ten, {}) == ten);
  CHECK(difference({}, ten).empty());
  CHECK(to_string(difference({1, 3, 5}, RankSet::range(3, 100))) == "1");
  CHECK(to_string(difference(RankSet{0, 1, 10, 11}, {1, 10})) == "0,11");
}

TEST_CASE("the intersection of rank sets has the ranks of both") {
  const RankSet ten = RankSet::range(0, 9);
  CHECK(to_string(intersection(ten, {0, 4, 5, 12})) == "0,4-5");
  CHECK(intersection(ten, {}).empty());
  CHECK(intersection({}, ten).empty());
  CHECK(intersection(ten, RankSet::range(10, 20)).empty());
}

TEST_CASE("a rank set contains another if it has all of its ranks, and meets it if it has one") {
  const RankSet ten = RankSet::range(0, 9);
  CHECK(ten.contains(RankSet{0, 4, 9}));
  CHECK(ten.contains(RankSet()));
  CHECK_FALSE(ten.contains(RankSet{9, 10}));
  CHECK_FALSE(RankSet{0, 2}.contains(RankSet::range(0, 2)));
  CHECK(ten.meets({9, 10}));
  CHECK_FALSE(ten.meets({10}));
  CHECK_FALSE(ten.meets({}));
  CHECK_FALSE(RankSet().meets(ten));
}

TEST_CASE("a phrase of many ranges gives their number instead of all of them") {
  CHECK(ranks_phrase({3}) == "rank 3");
  CHECK(ranks_phrase({1, 2, 3}) == "ranks 1-3");
  CHECK(ranks_phrase({}) == "no rank");
  RankSet even;
  for (Rank rank = 0; rank < 1000; rank += 2) {
    even.insert(rank);
  }
  CHECK(ranks_phrase(even) == "500 ranks (0,2,4,6,8,10,...)");
}

}  // namespace rollcall::rank_set_test
