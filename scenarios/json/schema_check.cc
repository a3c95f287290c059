#include "scenarios/json/schema_check.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/schema.h"
#include "scenarios/json/suggest.h"

namespace rollcall::scenario {
namespace {

using nlohmann::json;

// Kinds of objects that later versions know.
constexpr std::array<std::string_view, 1> planned_kinds{"module"};

using Path = std::vector<std::string_view>;

// Lists of statements are left to lowering.
bool is_statement_list(const Path& path) {
  if (path.size() == 1) {
    return path[0] == "program";
  }
  if (path.size() == 2) {
    return path[0] == "programs";
  }
  return path.size() == 3 && path[0] == "objects" &&
         (path[2] == "forward" || path[2] == "main_hook" || path[2] == "post_hook");
}

// An object whose kind a later version knows.
std::optional<Json> planned_kind(const Json& value, const Path& path) {
  const auto kind = path.size() == 2 && path[0] == "objects" ? value.find("kind") : std::nullopt;
  const bool is_later =
      kind && kind->is(JsonType::string) &&
      std::find(planned_kinds.begin(), planned_kinds.end(), kind->text()) != planned_kinds.end();
  return is_later ? kind : std::nullopt;
}

// The part of the document that the schema judges, as the validator's own kind of value.
class Extract {
 public:
  explicit Extract(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  json convert(const Json& value) {
    switch (value.type()) {
      case JsonType::null:
        return nullptr;
      case JsonType::boolean:
        return value.boolean();
      case JsonType::integer:
        return value.integer();
      case JsonType::real:
        return value.real();
      case JsonType::string:
        return std::string(value.text());
      case JsonType::array:
        return is_statement_list(path_) ? json::array() : convert_array(value);
      case JsonType::object:
        return convert_object(value);
    }
    return nullptr;
  }

 private:
  json convert_array(const Json& value) {
    json array = json::array();
    path_.emplace_back();
    for (Json element : value.children()) {
      array.push_back(convert(element));
    }
    path_.pop_back();
    return array;
  }

  json convert_object(const Json& value) {
    json object = json::object();
    for (Json member : value.children()) {
      path_.push_back(member.key());
      if (const auto kind = planned_kind(member, path_)) {
        diagnostics_.error(
            kind->offset(), kind->pointer(),
            fmt::format("objects of kind \"{}\" are not supported by this version", kind->text()));
      } else {
        object[std::string(member.key())] = convert(member);
      }
      path_.pop_back();
    }
    return object;
  }

  Diagnostics& diagnostics_;
  Path path_;
};

const json& resolve(const json& schema, const json& node) {
  const json* at = &node;
  while (at->contains("$ref")) {
    at = &schema.at(json::json_pointer(at->at("$ref").get<std::string>().substr(1)));  // without '#'
  }
  return *at;
}

// A place in the document, and what the schema says about it.
struct Spot {
  Json value;
  const json* rule;
};

// Follows the validator's path: "<root>", "[groups]", "[0]".
Spot locate(const Json& root, const json& schema, const std::vector<std::string>& context) {
  Spot spot{root, &schema};
  for (std::size_t i = 1; i < context.size(); ++i) {
    const std::string step = context[i].substr(1, context[i].size() - 2);
    if (spot.value.is(JsonType::array)) {
      auto element = spot.value.children().begin();
      std::advance(element, std::stoul(step));
      spot = {*element, &resolve(schema, spot.rule->at("items"))};
    } else {
      const bool is_listed = spot.rule->contains("properties") && spot.rule->at("properties").contains(step);
      const json& next =
          is_listed ? spot.rule->at("properties").at(step) : spot.rule->at("additionalProperties");
      spot = {*spot.value.find(step), &resolve(schema, next)};
    }
  }
  return spot;
}

// "a string or an array".
std::string types_phrase(const json& types) {
  std::vector<std::string> names;
  for (const json& type : types.is_array() ? types : json::array({types})) {
    const std::string name = type.get<std::string>();
    const bool has_vowel = std::string_view("aeiou").find(name[0]) != std::string_view::npos;
    names.push_back((has_vowel ? "an " : "a ") + name);
  }
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

std::string wrong_type(const Spot& spot) {
  const json& rule = *spot.rule;
  if (rule.value("title", "") == "duration" && spot.value.is_number()) {
    return "a duration needs a unit, such as \"5ms\"";
  }
  const bool has_short_one = rule.contains("examples") && rule["examples"][0].is_primitive();
  const std::string example = has_short_one ? fmt::format(" such as {}", rule["examples"][0].dump()) : "";
  return fmt::format("expected {}{}, found {}", types_phrase(rule.at("type")), example,
                     to_phrase(spot.value.type()));
}

std::vector<std::string> keys_of(const json& rule) {
  std::vector<std::string> keys;
  if (rule.contains("properties")) {
    for (const auto& [key, value] : rule["properties"].items()) {
      keys.push_back(key);
    }
  }
  return keys;
}

void report_unknown_keys(const Spot& spot, Diagnostics& diagnostics) {
  const auto known = keys_of(*spot.rule);
  for (Json member : spot.value.children()) {
    if (std::find(known.begin(), known.end(), member.key()) == known.end()) {
      diagnostics.error(member.key_offset(), member.pointer(),
                        fmt::format("unknown key \"{}\"", member.key()), suggest_from(member.key(), known));
    }
  }
}

void report_enum(const Spot& spot, Diagnostics& diagnostics) {
  std::vector<std::string> words;
  for (const json& word : spot.rule->at("enum")) {
    words.push_back(word.get<std::string>());
  }
  const std::string_view found = spot.value.is(JsonType::string) ? spot.value.text() : std::string_view();
  diagnostics.error(spot.value.offset(), spot.value.pointer(),
                    fmt::format("expected one of {}", fmt::join(words, ", ")), suggest_from(found, words));
}

bool says(const std::string& description, std::string_view words) {
  return description.find(words) != std::string::npos;
}

bool is_type_error(const std::string& description) { return says(description, "'type' constraint"); }

// What the validator says in general, said about this place.
std::string rephrase(const Spot& spot, const std::string& description) {
  if (is_type_error(description)) {
    return wrong_type(spot);
  }
  if (says(description, "'const' constraint")) {
    return fmt::format("expected {}", spot.rule->at("const").dump());
  }
  if (says(description, "greater than")) {
    return fmt::format("must be at least {}", spot.rule->at("minimum").dump());
  }
  if (says(description, "less than")) {
    return fmt::format("must be at most {}", spot.rule->at("maximum").dump());
  }
  if (says(description, "no fewer than") || says(description, "no more than")) {
    return says(description, "fewer") ? "must not be empty" : "is too long";
  }
  constexpr std::string_view missing = "Missing required property '";
  if (description.starts_with(missing)) {
    const std::size_t length = description.rfind('\'') - missing.size();
    return fmt::format("\"{}\" is missing", description.substr(missing.size(), length));
  }
  return description.substr(0, description.find_last_not_of('.') + 1);
}

void report(const Spot& spot, const std::string& description, Diagnostics& diagnostics) {
  if (says(description, "'additionalProperties'")) {
    report_unknown_keys(spot, diagnostics);
  } else if (says(description, "enum values")) {
    report_enum(spot, diagnostics);
  } else {
    diagnostics.error(spot.value.offset(), spot.value.pointer(), rephrase(spot, description));
  }
}

// The parent of a value that failed repeats that it failed; only the failure itself is told.
bool is_echo(const std::string& description) { return description.starts_with("Failed to validate"); }

// What else is wrong with a value of the wrong type does not matter.
std::set<std::uint32_t> mistyped_values(const Json& root, const json& schema,
                                        const valijson::ValidationResults& results) {
  std::set<std::uint32_t> mistyped;
  for (const auto& error : results) {
    if (is_type_error(error.description)) {
      mistyped.insert(locate(root, schema, error.context).value.index());
    }
  }
  return mistyped;
}

// A schema as text is for people, compiled for the validator. Both are needed: messages quote the text.
struct Rules {
  json text;
  valijson::Schema compiled;

  explicit Rules(json schema) : text(std::move(schema)) {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(text), compiled);
  }
};

void validate(const valijson::Schema& compiled, const json& document, valijson::ValidationResults& results) {
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  validator.validate(compiled, valijson::adapters::NlohmannJsonAdapter(document), &results);
}

}  // namespace

namespace {

void check_against(const Rules& rules, const Json& root, Diagnostics& diagnostics) {
  const json& schema = rules.text;
  const json document = Extract(diagnostics).convert(root);

  valijson::ValidationResults results;
  validate(rules.compiled, document, results);
  const std::set<std::uint32_t> mistyped = mistyped_values(root, schema, results);
  std::set<std::tuple<std::uint32_t, std::string>> reported;
  for (const auto& error : results) {
    const Spot spot = locate(root, schema, error.context);
    const bool is_moot = mistyped.contains(spot.value.index()) && !is_type_error(error.description);
    if (!is_echo(error.description) && !is_moot &&
        reported.emplace(spot.value.index(), error.description).second) {
      report(spot, error.description, diagnostics);
    }
  }
}

// Every file is one case of its matrix here, which has the keys that the file may leave to it.
json scenario_rules() {
  json schema = json::parse(schema_text());
  schema["definitions"]["statements"] = {{"type", "array"}};
  schema.erase("if");
  schema.erase("else");
  schema["required"] = {"world_size"};
  return schema;
}

json cluster_rules() {
  const json whole = json::parse(schema_text());
  json schema = whole["definitions"]["cluster"];
  schema["definitions"] = whole["definitions"];
  return schema;
}

}  // namespace

namespace {

// Compiling takes as long as checking a hundred files: once is enough.
const Rules& rules_for_scenarios() {
  static const Rules rules(scenario_rules());
  return rules;
}

}  // namespace

void check_schema(const Json& root, Diagnostics& diagnostics) {
  check_against(rules_for_scenarios(), root, diagnostics);
}

void prepare_schema() { static_cast<void>(rules_for_scenarios()); }

void check_cluster_schema(const Json& root, Diagnostics& diagnostics) {
  static const Rules rules(cluster_rules());
  check_against(rules, root, diagnostics);
}

}  // namespace rollcall::scenario
