#include "sim/repair/difference.h"

#include <vector>

#include "tests/catch.h"
#include "tests/conformance/random.h"

namespace rollcall::check::difference_test {
namespace {

using List = std::vector<std::uint64_t>;

List patched(const List& old_list, const List& new_list, const std::vector<Hunk>& hunks) {
  List result;
  std::size_t next = 0;
  for (const Hunk& hunk : hunks) {
    for (; next < hunk.at; ++next) {
      result.push_back(old_list[next]);
    }
    for (std::size_t i = 0; i < hunk.inserted; ++i) {
      result.push_back(new_list[hunk.from + i]);
    }
    next += hunk.dropped;
  }
  for (; next < old_list.size(); ++next) {
    result.push_back(old_list[next]);
  }
  return result;
}

std::size_t edits_in(const std::vector<Hunk>& hunks) {
  std::size_t edits = 0;
  for (const Hunk& hunk : hunks) {
    edits += hunk.dropped + hunk.inserted;
  }
  return edits;
}

// Returns the length of the longest common subsequence, by the well-known table.
std::size_t common(const List& a, const List& b) {
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
    }
  }
  return best[a.size()][b.size()];
}

}  // namespace

TEST_CASE("equal lists differ nowhere", "[repair]") {
  const List list = {1, 2, 3};
  CHECK(difference_of(list, list, 8)->empty());
  CHECK(difference_of({}, {}, 8)->empty());
}

TEST_CASE("a call that is missing, a call too many and a call in another place are found where they are",
          "[repair]") {
  const List whole = {1, 2, 3, 1, 2, 3};
  const auto missing = difference_of(List{1, 2, 3, 1, 3}, whole, 8);
  REQUIRE(missing->size() == 1);
  CHECK(missing->front().at == 4);
  CHECK(missing->front().inserted == 1);
  CHECK(missing->front().dropped == 0);
  const auto extra = difference_of(List{1, 2, 3, 1, 2, 9, 3}, whole, 8);
  REQUIRE(extra->size() == 1);
  CHECK(extra->front().at == 5);
  CHECK(extra->front().dropped == 1);
  CHECK(edits_in(*difference_of(List{1, 3, 2, 1, 2, 3}, whole, 8)) == 2);
}

TEST_CASE("a block of any length is one difference, and more of them than allowed are none", "[repair]") {
  const List one(1000, 7);
  List other = one;
  other.insert(other.end(), 500, 8);
  CHECK(difference_of(one, other, 4)->size() == 1);
  CHECK(difference_of(other, one, 4)->size() == 1);
  CHECK_FALSE(difference_of(List{1, 2, 3, 4, 5, 6}, List{6, 5, 4, 3, 2, 1}, 4));
}

TEST_CASE("what a list has beyond the end of one that breaks off is not a difference", "[repair]") {
  const List usual = {1, 2, 3, 1, 2, 3};
  const OpenEnds own_breaks_off{.old_list = true};
  CHECK(difference_of(List{1, 2, 3, 1}, usual, 8, own_breaks_off)->empty());
  CHECK(difference_of(usual, List{1, 2, 3, 1}, 8, {.new_list = true})->empty());
  CHECK(difference_of(List{1, 2, 3, 1}, usual, 8)->size() == 1);
  const auto hunks = difference_of(List{1, 3, 1}, usual, 8, own_breaks_off);
  REQUIRE(hunks->size() == 1);
  CHECK(hunks->front().at == 1);
  CHECK(hunks->front().inserted == 1);
}

TEST_CASE("the difference of two lists turns one into the other, in the fewest edits", "[repair]") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    conformance::Random random(seed);
    const auto draw = [&] {
      List list(random.below(14));
      for (std::uint64_t& element : list) {
        element = random.below(4);
      }
      return list;
    };
    const List a = draw();
    const List b = draw();
    const auto hunks = difference_of(a, b, 64);
    INFO("seed " << seed);
    REQUIRE(hunks);
    CHECK(patched(a, b, *hunks) == b);
    CHECK(edits_in(*hunks) == a.size() + b.size() - 2 * common(a, b));
  }
}

}  // namespace rollcall::check::difference_test
