#include "scenarios/json/schema_check.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/schema.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"

namespace rollcall::scenario {
namespace {

// Kinds of objects that later versions support.
constexpr std::array<std::string_view, 1> planned_kinds{"module"};

Json schema_root() {
  static const SourceText text("scenario-v1.schema.json", std::string(schema_text()));
  static const JsonTree tree = read_json(text);
  return tree.root();
}

// Follows "#/definitions/duration".
Json definition(std::string_view reference) {
  Json at = schema_root();
  for (std::size_t begin = 2; begin <= reference.size();) {
    const std::size_t end = std::min(reference.find('/', begin), reference.size());
    at = *at.find(reference.substr(begin, end - begin));
    begin = end + 1;
  }
  return at;
}

// A number or text as the schema writes it.
std::string written(const Json& value) {
  return value.is(JsonType::string)    ? fmt::format("\"{}\"", value.text())
         : value.is(JsonType::integer) ? fmt::format("{}", value.integer())
                                       : fmt::format("{}", value.real());
}

// The names of the types that a rule allows.
std::vector<std::string_view> words_of(const Json& one_or_list) {
  std::vector<std::string_view> words;
  for (const Json& each : one_or_list.children()) {
    words.push_back(each.text());
  }
  return one_or_list.is(JsonType::string) ? std::vector{one_or_list.text()} : words;
}

bool is_of_type(const Json& value, std::string_view type) {
  switch (value.type()) {
    case JsonType::null:
      return type == "null";
    case JsonType::boolean:
      return type == "boolean";
    case JsonType::integer:
      return type == "integer" || type == "number";
    case JsonType::real:
      return type == "number";
    case JsonType::string:
      return type == "string";
    case JsonType::array:
      return type == "array";
    case JsonType::object:
      return type == "object";
  }
  return false;
}

// "a string or an array".
std::string types_phrase(const std::vector<std::string_view>& types) {
  std::string phrase;
  for (const std::string_view type : types) {
    const bool has_vowel = std::string_view("aeiou").find(type[0]) != std::string_view::npos;
    const std::string_view before = phrase.empty() ? "" : type == types.back() ? " or " : ", ";
    phrase += fmt::format("{}{} {}", before, has_vowel ? "an" : "a", type);
  }
  return phrase;
}

std::string wrong_type(const Json& value, const Json& rule) {
  const auto title = rule.find("title");
  if (title && title->text() == "duration" && value.is_number()) {
    return "a duration needs a unit, such as \"5ms\"";
  }
  std::string example;
  if (const auto examples = rule.find("examples")) {
    const Json first = *examples->children().begin();
    const bool is_short = !first.is(JsonType::array) && !first.is(JsonType::object);
    example = is_short ? " such as " + written(first) : "";
  }
  return fmt::format("expected {}{}, found {}", types_phrase(words_of(*rule.find("type"))), example,
                     to_phrase(value.type()));
}

// Walks a document and the schema in parallel. If a value has the wrong type, nothing else about it is reported. The
// schema's other keywords are descriptions, or belong to statements; tests/unit/scenarios/json/schema_check_test.cc
// lists them.
class SchemaCheck {
 public:
  explicit SchemaCheck(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void check(const Json& value, const Json& reference) {
    const auto target = reference.find("$ref");
    if (target && target->text() == "#/definitions/object" && is_planned(value)) {
      return;
    }
    const Json rule = target ? definition(target->text()) : reference;
    if (const auto type = rule.find("type")) {
      const std::vector<std::string_view> types = words_of(*type);
      if (std::ranges::none_of(types, [&](std::string_view each) { return is_of_type(value, each); })) {
        return error(value, wrong_type(value, rule));
      }
    }
    check_words(value, rule);
    check_bounds(value, rule);
    if (target && target->text() == "#/definitions/statements") {
      return;
    }
    if (value.is(JsonType::array)) {
      check_items(value, rule);
    } else if (value.is(JsonType::object)) {
      check_members(value, rule);
    }
  }

 private:
  void error(const Json& value, std::string message, std::string_view suggestion = {}) {
    diagnostics_.error(value, std::move(message), suggestion);
  }

  // True for an object whose kind a later version supports.
  bool is_planned(const Json& value) {
    const auto kind = value.find("kind");
    const bool is_later =
        kind && kind->is(JsonType::string) && std::ranges::count(planned_kinds, kind->text()) > 0;
    if (is_later) {
      error(*kind, fmt::format("objects of kind \"{}\" are not supported by this version", kind->text()));
    }
    return is_later;
  }

  void check_words(const Json& value, const Json& rule) {
    if (const auto only = rule.find("const"); only && (!value.is_number() || value.real() != only->real())) {
      error(value, fmt::format("expected {}", written(*only)));
    }
    if (const auto listed = rule.find("enum")) {
      const std::vector<std::string_view> words = words_of(*listed);
      const std::string_view found = value.is(JsonType::string) ? value.text() : std::string_view();
      if (!value.is(JsonType::string) || std::ranges::count(words, found) == 0) {
        error(value, fmt::format("expected one of {}", fmt::join(words, ", ")), suggest(found, words));
      }
    }
  }

  void check_bounds(const Json& value, const Json& rule) {
    if (value.is_number()) {
      if (const auto minimum = rule.find("minimum"); minimum && value.real() < minimum->real()) {
        error(value, fmt::format("must be at least {}", written(*minimum)));
      }
      if (const auto maximum = rule.find("maximum"); maximum && value.real() > maximum->real()) {
        error(value, fmt::format("must be at most {}", written(*maximum)));
      }
      return;
    }
    const auto size =
        static_cast<std::int64_t>(value.is(JsonType::string) ? value.text().size() : value.size());
    const auto least = rule.find(value.is(JsonType::string)  ? "minLength"
                                 : value.is(JsonType::array) ? "minItems"
                                                             : "minProperties");
    if (least && size < least->integer()) {
      error(value, "must not be empty");
    }
    if (const auto most = rule.find("maxItems");
        most && value.is(JsonType::array) && size > most->integer()) {
      error(value, "is too long");
    }
  }

  void check_items(const Json& list, const Json& rule) {
    if (const auto items = rule.find("items")) {
      for (const Json& each : list.children()) {
        check(each, *items);
      }
    }
  }

  void check_members(const Json& object, const Json& rule) {
    const auto properties = rule.find("properties");
    const auto others = rule.find("additionalProperties");
    for (const Json& member : object.children()) {
      if (const auto property = properties ? properties->find(member.key()) : std::nullopt) {
        check(member, *property);
      } else if (others && others->is(JsonType::object)) {
        check(member, *others);
      } else if (others && !others->boolean()) {
        report_unknown(member, properties);
      }
    }
    check_required(object, rule);
    if (const auto otherwise =
            rule.find("else")) {  // every file is one case of its matrix here, so no matrix is left
      check_required(object, *otherwise);
    }
  }

  void check_required(const Json& object, const Json& rule) {
    if (const auto required = rule.find("required")) {
      for (const Json& key : required->children()) {
        if (!object.find(key.text())) {
          error(object, fmt::format("\"{}\" is missing", key.text()));
        }
      }
    }
  }

  void report_unknown(const Json& member, const std::optional<Json>& properties) {
    const auto known = properties ? keys_of(*properties) : std::vector<std::string_view>();
    diagnostics_.error_at_key(member, fmt::format("unknown key \"{}\"", member.key()),
                              suggest(member.key(), known));
  }

  Diagnostics& diagnostics_;
};

}  // namespace

Json schema_fields() { return *schema_root().find("properties"); }

std::vector<std::string_view> keys_of(const Json& rule) {
  std::vector<std::string_view> keys;
  for (const Json& member : rule.children()) {
    keys.push_back(member.key());
  }
  std::ranges::sort(keys);
  return keys;
}

void check_schema(const Json& root, Diagnostics& diagnostics) {
  SchemaCheck(diagnostics).check(root, schema_root());
}

void check_cluster_schema(const Json& root, Diagnostics& diagnostics) {
  SchemaCheck(diagnostics).check(root, definition("#/definitions/cluster"));
}

}  // namespace rollcall::scenario
