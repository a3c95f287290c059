#include "sim/match/strong_components.h"
#include "tests/catch.h"

namespace rollcall::check::strong_components_test {
namespace {

using Sets = std::vector<std::vector<std::size_t>>;

TEST_CASE("nodes that reach each other are one component", "[matcher]") {
  CHECK(strong_components({}).empty());
  CHECK(strong_components({{}, {0}}) == Sets{{0}, {1}});
  CHECK(strong_components({{1}, {2}, {0}}) == Sets{{0, 1, 2}});
  CHECK(strong_components({{0}}) == Sets{{0}});
}

TEST_CASE("an edge between components joins neither", "[matcher]") {
  // 0 <-> 3, 1 <-> 2, and a path from the first pair to the second through 4.
  CHECK(strong_components({{3, 4}, {2}, {1}, {0}, {1}}) == Sets{{0, 3}, {1, 2}, {4}});
}

TEST_CASE("two rings that share a node are one component", "[matcher]") {
  CHECK(strong_components({{1, 2}, {0}, {3}, {0}, {3}}) == Sets{{0, 1, 2, 3}, {4}});
}

TEST_CASE("a ring may be longer than the stack is deep", "[matcher]") {
  constexpr std::size_t size = 500'000;
  Sets next(size);
  for (std::size_t i = 0; i < size; ++i) {
    next[i] = {(i + 1) % size};
  }
  const Sets components = strong_components(next);
  REQUIRE(components.size() == 1);
  CHECK(components.front().size() == size);
}

}  // namespace
}  // namespace rollcall::check::strong_components_test
