#include <string>
#include <string_view>
#include <vector>

#include "scenarios/json/suggest.h"
#include "tests/catch.h"

namespace rollcall::scenario::suggest_test {
namespace {

const std::vector<std::string> words{"all_reduce", "all_gather", "reduce", "broadcast", "if", "for"};

}  // namespace

TEST_CASE("edits are insertions, deletions, replacements and swaps", "[scenarios]") {
  CHECK(edit_distance("rank", "rank") == 0);
  CHECK(edit_distance("rank", "rnak") == 1);
  CHECK(edit_distance("rank", "ranks") == 1);
  CHECK(edit_distance("rank", "bank") == 1);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("All-Reduce", "all_reduce") == 0);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("a slip of the fingers finds its word", "[scenarios]") {
  CHECK(suggest_from("al_reduce", words) == "all_reduce");
  CHECK(suggest_from("allreduce", words) == "all_reduce");
  CHECK(suggest_from("brodcast", words) == "broadcast");
  CHECK(suggest_from("fi", words) == "if");
}

TEST_CASE("another word finds nothing", "[scenarios]") {
  CHECK(suggest_from("sleep", words) == "");
  CHECK(suggest_from("x", words) == "");
  CHECK(suggest_from("", words) == "");
  CHECK(suggest_from(std::string(1000, 'a'), words) == "");
}

}  // namespace rollcall::scenario::suggest_test
