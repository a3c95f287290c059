// Disturbed scenarios: what they survive.

#include <algorithm>
#include <string>

#include "scenarios/variants/what_if.h"
#include "tests/catch.h"
#include "tests/folder.h"

namespace rollcall::scenario::what_if_test {
namespace {

constexpr const char* even = R"({"version": 1, "world_size": 3, "backend": "gloo", "inputs": 4, "program": [
  {"for_each_input": "x", "do": [{"compute": "1ms"}, {"all_reduce": {"numel": 8}}]}]})";

std::string came_to(const WhatIf& found, const std::string& what, const std::string& where) {
  const auto survival = std::ranges::find_if(
      found.survivals, [&](const Survival& each) { return each.what == what && each.where == where; });
  return survival == found.survivals.end() ? "not tried" : survival->verdict;
}

// Writes the file and returns its path.
std::string written(const test::Folder& folder, const std::string& name, const std::string& text) {
  folder.write(name, text);
  return folder.path(name);
}

}  // namespace

TEST_CASE("a loop without Join survives none of the inputs that a rank has more or less",
          "[what-if][fiber]") {
  const test::Folder folder;
  const WhatIf found = what_if(written(folder, "even.json", even), {});
  for (const char* rank : {"rank 0", "rank 1", "rank 2"}) {
    CHECK(came_to(found, "inputs - 1", rank) == "deadlock");
    CHECK(came_to(found, "inputs + 1", rank) == "deadlock");
    CHECK(came_to(found, "skips an input", rank) == "deadlock");
    CHECK(came_to(found, "exits early", rank) == "deadlock");
    CHECK(came_to(found, "10 times slower", rank) == "ok");
  }
  CHECK(found.survivals.size() == 15);
}

TEST_CASE("a rank can be made to die at each of its calls", "[what-if][fiber]") {
  const test::Folder folder;
  const WhatIf found = what_if(written(folder, "even.json", even), {.crash_each = true});
  const auto deaths = std::ranges::count(found.survivals, "dies", &Survival::what);
  CHECK(deaths >= 3 * 4);
  CHECK(std::ranges::none_of(
      found.survivals, [](const Survival& each) { return each.what == "dies" && each.verdict == "ok"; }));
}

TEST_CASE("a slow rank is survived until a timeout is near", "[what-if][fiber]") {
  const test::Folder folder;
  std::string tight = even;
  tight.insert(1, R"("timeout": "5ms", )");
  const WhatIf found = what_if(written(folder, "tight.json", tight), {});
  CHECK(came_to(found, "10 times slower", "rank 1") == "race");
}

}  // namespace rollcall::scenario::what_if_test
