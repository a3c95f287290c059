// The published schema and the program must agree: each accepts and describes what the other does.

#include "scenarios/json/schema_check.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "scenarios/json/schema.h"
#include "scenarios/json/source.h"
#include "scenarios/program/statements.h"
#include "tests/catch.h"
#include "tests/json_schema.h"
#include "tests/shipped_scenarios.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::schema_check_test {
namespace {

using nlohmann::json;

const json& schema() {
  static const json parsed = json::parse(schema_text());
  return parsed;
}

// True if the whole schema, including statements, accepts this document, as an editor would judge.
bool editor_accepts(const std::string& text) {
  return test::objections(schema(), json::parse(text, nullptr, true, true)).empty();
}

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) {
    names.insert(key);
  }
  return names;
}

// Requires that every "properties" below a node belongs to a closed object.
void require_closed(const json& node, const std::string& path) {
  if (node.is_object() && node.contains("properties") && node["properties"].is_object()) {
    INFO(path);
    CHECK(node.value("additionalProperties", json(true)) == json(false));
  }
  if (node.is_structured()) {
    for (const auto& [key, value] : node.items()) {
      require_closed(value, path + "/" + key);
    }
  }
}

// Collects the keywords of a rule and of the rules inside it; `$ref` names a rule elsewhere.
void collect_keywords(const json& rule, std::set<std::string>& keywords) {
  for (const auto& [keyword, argument] : rule.items()) {
    keywords.insert(keyword);
    if (keyword == "properties") {
      for (const json& property : argument) {
        collect_keywords(property, keywords);
      }
    } else if (keyword == "items" || (keyword == "additionalProperties" && argument.is_object())) {
      collect_keywords(argument, keywords);
    }
  }
}

}  // namespace

TEST_CASE("the program checks every keyword with which the schema restricts a scenario's head",
          "[scenarios]") {
  std::set<std::string> keywords;
  collect_keywords(schema(), keywords);
  for (const auto& [name, rule] : schema()["definitions"].items()) {
    if (!name.starts_with("statement") && name != "argument") {
      collect_keywords(rule, keywords);
    }
  }
  const std::set<std::string> checked{"$ref",          "additionalProperties",
                                      "const",         "else",
                                      "enum",          "items",
                                      "maxItems",      "maximum",
                                      "minItems",      "minLength",
                                      "minProperties", "minimum",
                                      "properties",    "required",
                                      "type"};
  const std::set<std::string> notes{"$id",      "$schema", "definitions", "description",
                                    "examples", "if",      "title"};
  for (const std::string& keyword : keywords) {
    INFO(keyword);
    CHECK((checked.contains(keyword) || notes.contains(keyword)));
  }
}

TEST_CASE("the schema and the statement table name the same statements and arguments", "[scenarios]") {
  std::set<std::string> described;
  for (const json& alternative : schema()["definitions"]["statements"]["items"]["anyOf"]) {
    described.insert(alternative["$ref"].get<std::string>());
  }
  CHECK(described.size() == statement_rules().size());
  for (const StatementRule& rule : statement_rules()) {
    INFO(rule.key);
    const std::string name = "statement_" + std::string(rule.key);
    CHECK(described.contains("#/definitions/" + name));
    REQUIRE(schema()["definitions"].contains(name));
    const json& properties = schema()["definitions"][name]["properties"];
    std::set<std::string> expected{std::string(rule.key)};
    expected.insert(rule.arguments.begin(), rule.arguments.end());
    CHECK(keys(properties) == expected);
    if (rule.takes_object) {
      expected.erase(std::string(rule.key));
      CHECK(keys(properties[std::string(rule.key)]["properties"]) == expected);
    }
  }
}

TEST_CASE("the schema closes every object and describes every key", "[scenarios]") {
  require_closed(schema(), "");
  for (const auto& [key, value] : schema()["properties"].items()) {
    INFO(key);
    CHECK((value.contains("description") || value.contains("$ref")));
  }
}

TEST_CASE("editors and the program accept the same scenarios", "[scenarios]") {
  const std::vector<std::string> good{
      R"({"barrier": {}})",
      R"({"all_reduce": {"numel": 4, "dtype": "bfloat16", "value": 0.5, "reduce_op": "MAX",
          "label": "grads"}})",
      R"({"fill": "t", "value": "rank", "shape": [2, 3]},
          {"all_reduce": "t", "async_op": true, "as": "w"}, {"wait": "w"})",
      R"({"for": "i", "in": [0, "rank + 1"], "do": [{"repeat": 2, "do": [{"break": true}]}]})",
      R"({"if": "rank == 0", "do": [{"raise": {"type": "KeyError", "message": "m"}}],
          "else": [{"exit": true}]})",
      R"({"try": {"do": [{"raise": "x"}], "except": [{"print": "{error}"}]}})",
      R"({"all_gather": {"value": 1, "output": "all"}}, {"check": "all[0]", "value": 1},
          {"item": "all[1]", "as": "v"})",
      R"({"set_device": "cuda:{local_rank}"}, {"compute": "5ms"}, {"fill": "a", "value": 1},
          {"copy": "b", "from": "a"})",
  };
  const std::vector<std::string> about_hosts{
      R"({"new_group": [0, 2], "as": "g", "timeout": "2s"}, {"new_group": {}}, {"new_group": "0-1"})",
      R"({"new_subgroups": 2, "as": "s"}, {"split_group": [[0, 1], "2-3"], "group": "s", "as": "p"},
          {"split_group": {}}, {"destroy_process_group": "p"}, {"destroy_process_group": {}})",
      R"({"monitored_barrier": {"timeout": "2s", "wait_all_ranks": true}},
          {"store_set": "k{rank}", "value": "v"}, {"store_get": "k0", "want": "v", "timeout": "1s"},
          {"store_add": "n", "as": "n"}, {"store_wait": ["a", "b"]}, {"store_delete": {"key": "a"}},
          {"store_compare_set": "c", "expected_value": "1", "desired_value": "{rank}", "as": "c"})",
  };
  for (const std::string& statements : about_hosts) {
    INFO(statements);
    CHECK(test::problems(test::quartet(statements)).empty());
    CHECK(editor_accepts(test::quartet(statements)));
  }
  for (const std::string& statements : good) {
    INFO(statements);
    CHECK(test::problems(test::quartet(statements)).empty());
    CHECK(editor_accepts(test::quartet(statements)));
  }
  const std::vector<std::string> bad{
      R"({"al_reduce": "t"})",
      R"({"barrier": {"src": 0}})",
      R"({"all_reduce": 5})",
      R"({"all_reduce": {"numel": -1}})",
      R"({"compute": 5})",
      R"({"repeat": 2})",
      R"({"for": "i", "in": [0], "do": []})",
      R"({"try": {"do": []}})",
      R"({"exit": false})",
  };
  for (const std::string& statements : bad) {
    INFO(statements);
    CHECK_FALSE(test::problems(test::quartet(statements)).empty());
    CHECK_FALSE(editor_accepts(test::quartet(statements)));
  }
}

TEST_CASE("every scenario that ships is one to editors and to the program", "[scenarios]") {
  REQUIRE_FALSE(test::shipped_examples().empty());
  for (const std::filesystem::path& path : test::shipped_examples()) {
    INFO(path);
    CHECK_NOTHROW(load_scenario(path.string()));
    CHECK(editor_accepts(std::string(read_source(path.string()).text())));
  }
}

}  // namespace rollcall::scenario::schema_check_test
