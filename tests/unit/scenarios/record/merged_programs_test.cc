#include <nlohmann/json.hpp>

#include "scenarios/record/merged_programs.h"
#include "tests/catch.h"

namespace rollcall::scenario::merged_programs_test {
namespace {

std::vector<OrderedJson> statements(const char* text) {
  return OrderedJson::parse(text).get<std::vector<OrderedJson>>();
}

std::string merged(const std::vector<RankProgram>& programs) {
  std::string text;
  for (const OrderedJson& statement : merge_programs(programs)) {
    text += one_line(statement) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("what all ranks do stands once, what some do under a condition", "[scenarios][record]") {
  CHECK(merged({{RankSet::range(0, 2), statements(R"([{"a": 1}, {"b": 1}])")},
                {RankSet{3}, statements(R"([{"a": 1}, {"c": 1}, {"b": 1}])")}}) ==
        "{\"a\": 1}\n"
        "{\"if\": \"rank == 3\", \"do\": [{\"c\": 1}]}\n"
        "{\"b\": 1}\n");
}

TEST_CASE("the two sides of a condition are one statement", "[scenarios][record]") {
  CHECK(merged({{RankSet{0}, statements(R"([{"a": 1}, {"z": 1}])")},
                {RankSet::range(1, 3), statements(R"([{"b": 1}, {"z": 1}])")}}) ==
        "{\"if\": \"rank == 0\", \"do\": [{\"a\": 1}], \"else\": [{\"b\": 1}]}\n"
        "{\"z\": 1}\n");
}

TEST_CASE("loops of one body are one loop, however often each rank runs it", "[scenarios][record]") {
  CHECK(merged({{RankSet{0}, statements(R"([{"repeat": 5, "do": [{"a": 1}]}])")},
                {RankSet::range(1, 3), statements(R"([{"repeat": 6, "do": [{"a": 1}]}])")}}) ==
        "{\"repeat\": \"rank == 0 ? 5 : 6\", \"do\": [{\"a\": 1}]}\n");
}

TEST_CASE("loops that run equally often are one, and their bodies are merged", "[scenarios][record]") {
  CHECK(merged({{RankSet{0}, statements(R"([{"repeat": 5, "do": [{"a": 1}, {"b": 1}]}])")},
                {RankSet{1}, statements(R"([{"repeat": 5, "do": [{"a": 1}]}])")}}) ==
        "{\"repeat\": 5, \"do\": [{\"a\": 1}, {\"if\": \"rank == 0\", \"do\": [{\"b\": 1}]}]}\n");
}

}  // namespace rollcall::scenario::merged_programs_test
