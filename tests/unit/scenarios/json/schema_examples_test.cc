// The program accepts every example in the schema: every value of every field, in its place. Together with
// schema_check_test.cc, this keeps the help of editors correct.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "scenarios/json/schema.h"
#include "scenarios/program/statements.h"
#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::schema_examples_test {
namespace {

using nlohmann::json;
// Returns a scenario in which a value is at the place where the schema allows it.
using Slot = std::function<json(const json& value)>;

const json& schema() {
  static const json parsed = json::parse(schema_text());
  return parsed;
}

const json& resolved(const json& rule) {
  const json* at = &rule;
  while (at->contains("$ref")) {
    at = &schema().at(json::json_pointer((*at)["$ref"].get<std::string>().substr(1)));
  }
  return *at;
}

// Returns the values that an editor offers for a field.
std::vector<json> offered(const json& reference) {
  const json& rule = resolved(reference);
  for (const char* word : {"examples", "enum"}) {
    if (rule.contains(word)) {
      return rule[word];
    }
  }
  if (rule.contains("const")) {
    return {rule["const"]};
  }
  return rule.value("type", json()) == "boolean" ? std::vector<json>{true, false} : std::vector<json>{};
}

// Returns a scenario with an object for every name that the examples use. Its program runs before a statement.
json stage() {
  return json::parse(R"({ "version": 1, "world_size": 4, "inputs": 3,
    "groups": { "evens": [0, 2], "odds": [1, 3] },
    "objects": {
      "model": { "kind": "ddp", "parameters": [
        { "name": "0.weight", "numel": 4 }, { "name": "1.weight", "numel": 4 } ] },
      "optim": { "kind": "zero", "of": "model" },
      "pipeline": { "kind": "pipeline", "microbatches": 4 },
      "mlp": { "kind": "tensor_parallel", "modules": ["SequenceParallel"] },
      "sharded": { "kind": "fully_shard", "units": [ { "name": "layers.0", "parameters": [4] }, [4] ] },
      "counter": { "kind": "joinable", "forward": [], "main_hook": [] } },
    "program": [
      { "fill": "gradients", "value": "rank", "numel": 4 }, { "fill": "loss", "value": 1 },
      { "all_reduce": { "async_op": true, "as": "work" } } ] })");
}

// Returns one case of a matrix, because a file with several cases is not a single scenario.
json first_case(const json& matrix) {
  json scenario{{"version", 1}, {"program", json::array()}};
  for (const auto& [key, values] : matrix.items()) {
    scenario["matrix"][key] = json::array({values.front()});
  }
  return scenario;
}

// Some features need one particular backend.
std::vector<std::string> problems(json scenario) {
  std::vector<std::string> first;
  for (const char* backend : {"nccl", "gloo"}) {
    if (!scenario.contains("backend") || !first.empty()) {
      scenario["backend"] = backend;
    }
    const std::vector<std::string> found = test::problems(scenario.dump());
    if (found.empty()) {
      return {};
    }
    first = first.empty() ? found : first;
  }
  return first;
}

void check_accepted(const std::string& where, const json& scenario, const json& value) {
  INFO(where << ": " << value.dump());
  CHECK(problems(scenario) == std::vector<std::string>{});
}

// Returns the place of a key in an example: in the object itself, or in an object of a list.
std::optional<json::json_pointer> find_key(const json& example, const std::string& key) {
  if (example.is_object() && example.contains(key)) {
    return json::json_pointer() / key;
  }
  for (std::size_t i = 0; example.is_array() && i < example.size(); ++i) {
    if (example[i].is_object() && example[i].contains(key)) {
      return json::json_pointer() / i / key;
    }
  }
  return std::nullopt;
}

// The first example with this key, and the key's place in it.
struct Shown {
  json example = nullptr;
  json::json_pointer place = json::json_pointer();
};

Shown shown_in(const std::vector<json>& examples, const std::string& where, const std::string& key) {
  for (const json& example : examples) {
    if (const auto place = find_key(example, key)) {
      return {example, *place};
    }
  }
  FAIL("no example of " << where << " shows \"" << key << '"');
  return {};
}

// A kind decides which other fields there are, so each kind needs its own example.
void check_kinds(const std::string& where, const json& rule, const std::vector<json>& examples) {
  for (const json& kind : rule["enum"]) {
    INFO("no example of " << where << " is of kind " << kind);
    CHECK(std::any_of(examples.begin(), examples.end(), [&kind](const json& example) {
      const auto place = find_key(example, "kind");
      return place && example[*place] == kind;
    }));
  }
}

// Checks the examples of a field in `slot`, and those of its inner fields in the examples that show them.
void check_field(const std::string& where, const json& reference, const Slot& slot) {
  const json& rule = resolved(reference);
  const std::vector<json> examples = offered(reference);
  if (examples.empty()) {
    FAIL_CHECK(where << " has neither examples nor a list of values");
  }
  for (const json& example : examples) {
    check_accepted(where, slot(example), example);
  }
  const bool is_list = rule.contains("items") && !rule.contains("properties");
  const json& owner = is_list ? rule["items"] : rule;
  const json properties = owner.value("properties", json::object());
  for (const auto& [key, inner] : properties.items()) {
    if (key == "kind" && inner.contains("enum")) {
      check_kinds(where, inner, examples);
      continue;
    }
    const Shown shown = shown_in(examples, where, key);
    check_field(where + "/" + key, inner, [&slot, &shown](const json& value) {
      json example = shown.example;
      example[shown.place] = value;
      return slot(example);
    });
  }
}

// Adds the arguments that `argument` needs, and removes those that it replaces.
void complete(json& arguments, const std::string& argument, const json& properties) {
  static const std::map<std::string, std::set<std::string>> instead{
      {"numel", {"shape", "tensor"}},
      {"shape", {"numel", "tensor"}},
      {"tensor", {"numel", "shape", "dtype", "device", "value"}},
      {"value", {"tensor"}},
      {"flops", {"time"}},
      {"bytes", {"time"}}};
  if (const auto others = instead.find(argument); others != instead.end()) {
    for (const std::string& other : others->second) {
      arguments.erase(other);
    }
  }
  if (argument == "factor") {
    arguments["reduce_op"] = "PREMUL_SUM";
  }
  if (argument == "as" && properties.contains("async_op")) {
    arguments["async_op"] = true;
  }
  if (argument == "as" && properties.contains("async_ops")) {
    arguments["async_ops"] = true;
  }
  for (const auto& [one, other] : {std::pair{"input_split_sizes", "output_split_sizes"},
                                   std::pair{"output_split_sizes", "input_split_sizes"}}) {
    if (argument == one) {
      arguments[other] = arguments[one];
      arguments["numel"] = 4;
      arguments.erase("tensor");
    }
  }
}

json with_statement(const json& statement) {
  json scenario = stage();
  if (statement.contains("kernel")) {
    scenario["cluster"] = "h100-4";  // its GPU determines how long work takes
  }
  const bool needs_loop = statement.contains("break");
  scenario["program"].push_back(needs_loop ? json{{"repeat", 2}, {"do", json::array({statement})}}
                                           : statement);
  return scenario;
}

// Returns the statement with only its required fields besides its key.
json minimal_statement(const json& rule, const std::string& key) {
  json statement = key == "add" ? json{{"value", 1}} : json::object();  // needs this or a tensor
  for (const json& required : rule["required"]) {
    if (required != key) {
      statement[required.get<std::string>()] =
          offered(rule["properties"][required.get<std::string>()]).front();
    }
  }
  return statement;
}

// Returns its key's value as an object, if it has that form, otherwise the first example.
json head_of(const StatementRule& statement, const json& rule) {
  const std::vector<json> heads = offered(rule["properties"][std::string(statement.key)]);
  for (const json& head : heads) {
    if (statement.takes_object && head.is_object()) {
      return head;
    }
  }
  return heads.front();
}

void check_statement(const StatementRule& statement) {
  const std::string key(statement.key);
  const json& rule = schema()["definitions"]["statement_" + key];
  const json minimal = minimal_statement(rule, key);
  for (const json& head : offered(rule["properties"][key])) {
    json whole = minimal;
    whole[key] = head;
    check_accepted(key, with_statement(whole), whole);
  }
  const json head = head_of(statement, rule);
  const bool inside = statement.takes_object && head.is_object();
  for (const std::string_view argument : statement.arguments) {
    const std::string name(argument);
    const json& properties = inside ? rule["properties"][key]["properties"] : rule["properties"];
    const std::vector<json> values = offered(properties[name]);
    INFO(key << "/" << name << " has no examples");
    CHECK_FALSE(values.empty());
    for (const json& value : values) {
      json whole = minimal;
      whole[key] = head;
      json& arguments = inside ? whole[key] : whole;
      arguments[name] = value;
      complete(arguments, name, properties);
      check_accepted(key + "/" + name, with_statement(whole), whole);
    }
  }
}

// The sources that read scenarios.
std::vector<std::string> loader_sources() {
  std::vector<std::string> texts;
  const std::filesystem::path root = std::filesystem::path(ROLLCALL_SOURCE_DIR) / "scenarios";
  for (const char* folder : {"format", "program"}) {
    for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
      if (entry.path().extension() == ".cc" && entry.path().filename() != "report_reader.cc") {
        std::ifstream in(entry.path());
        texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
      }
    }
  }
  return texts;
}

void collect_fields(const json& node, std::set<std::string>& fields) {
  if (node.is_object() && node.contains("properties") && node["properties"].is_object()) {
    for (const auto& [key, value] : node["properties"].items()) {
      fields.insert(key);
    }
  }
  if (node.is_structured()) {
    for (const json& child : node) {
      collect_fields(child, fields);
    }
  }
}

}  // namespace

TEST_CASE("the program accepts every example that the schema gives for a scenario's head", "[scenarios]") {
  for (const auto& [key, rule] : schema()["properties"].items()) {
    const std::string name = key;
    check_field(name, rule, [&name](const json& value) {
      if (name == "matrix") {
        return first_case(value);
      }
      json scenario = stage();
      if (name == "programs") {
        scenario.erase("program");
      }
      if (name == "objects") {
        scenario["program"] = json::array();
      }
      scenario[name] = value;
      return scenario;
    });
  }
}

TEST_CASE("the program accepts every example that the schema gives for an object, parameter or group",
          "[scenarios]") {
  const json& definitions = schema()["definitions"];
  check_field("object", definitions["object"], [](const json& value) {
    json scenario = stage();
    json& probe = scenario["objects"]["probe"] = value;
    if (probe.value("strategy", "").find("HYBRID") != std::string::npos) {  // which needs two groups
      probe["group"] = "evens";
      probe["replicate_group"] = "odds";
    }
    if (probe.contains("tokens")) {  // which need a GPU
      scenario["cluster"] = "h100-8";
    }
    return scenario;
  });
  check_field("parameter", definitions["parameter"], [](const json& value) {
    json scenario = stage();
    scenario["program"] = json::array();
    scenario["objects"]["probe"] = {{"kind", "ddp"}, {"parameters", {value}}};
    return scenario;
  });
  check_field("group", definitions["group"], [](const json& value) {
    json scenario = stage();
    scenario["groups"]["probe"] = value;
    return scenario;
  });
}

TEST_CASE("the program accepts every example that the schema gives for a statement", "[scenarios]") {
  for (const StatementRule& statement : statement_rules()) {
    check_statement(statement);
  }
}

TEST_CASE(
    "the loader asks for no field that the schema lacks, and the schema has none that it never asks for",
    "[scenarios]") {
  std::set<std::string> fields;
  collect_fields(schema(), fields);
  fields.erase("$schema");  // for editors
  std::set<std::string> asked;
  std::set<std::string> written;
  for (const StatementRule& statement : statement_rules()) {
    written.insert(std::string(statement.key));  // collectives are in the table of operations
  }
  static const std::regex question(R"re(\bfind\("([a-z_0-9$]+)"\))re");
  static const std::regex word(R"re("([a-z_0-9$]+)")re");
  for (const std::string& text : loader_sources()) {
    for (std::sregex_iterator it(text.begin(), text.end(), question), end; it != end; ++it) {
      asked.insert((*it)[1]);
    }
    for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
      written.insert((*it)[1]);
    }
  }
  CHECK(asked.size() > 40);
  std::vector<std::string> unknown;
  std::set_difference(asked.begin(), asked.end(), fields.begin(), fields.end(), std::back_inserter(unknown));
  CHECK(unknown == std::vector<std::string>{});
  std::vector<std::string> ignored;
  std::set_difference(fields.begin(), fields.end(), written.begin(), written.end(),
                      std::back_inserter(ignored));
  CHECK(ignored == std::vector<std::string>{});
}

}  // namespace rollcall::scenario::schema_examples_test
