#include "tests/json_schema.h"

#include <fmt/core.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

namespace rollcall::test {
namespace {

using nlohmann::json;

// Keywords that only describe, and do not affect validity.
const std::set<std::string> notes{"$schema", "$id",     "title",       "description", "examples",
                                  "format",  "default", "definitions", "then"};

bool is_of_type(const json& value, const std::string& type) {
  return type == "number"    ? value.is_number()
         : type == "integer" ? value.is_number_integer()
                             : type == value.type_name();
}

class Validator {
 public:
  explicit Validator(const json& schema) : schema_(schema) {}

  // Returns a line for each error, with its place.
  std::string check(const json& value, const json& rule, const std::string& place) const {
    if (rule.contains("$ref")) {
      return check(value, schema_.at(json::json_pointer(rule["$ref"].get<std::string>().substr(1))), place);
    }
    std::string found;
    for (const auto& [keyword, argument] : rule.items()) {
      found += check_keyword(value, rule, keyword, argument, place);
    }
    return found;
  }

 private:
  std::size_t fitting(const json& value, const json& rules) const {
    return static_cast<std::size_t>(std::count_if(
        rules.begin(), rules.end(), [&](const json& rule) { return check(value, rule, "").empty(); }));
  }

  std::string check_keyword(const json& value, const json& rule, const std::string& keyword,
                            const json& argument, const std::string& place) const {
    const auto unless = [&](bool holds) { return holds ? "" : fmt::format("{}: {}\n", place, keyword); };
    if (keyword == "type") {
      const json types = argument.is_array() ? argument : json::array({argument});
      return unless(
          std::any_of(types.begin(), types.end(), [&](const json& type) { return is_of_type(value, type); }));
    }
    if (keyword == "enum") {
      return unless(std::find(argument.begin(), argument.end(), value) != argument.end());
    }
    if (keyword == "const") {
      return unless(value == argument);
    }
    if (keyword == "anyOf" || keyword == "oneOf") {
      const std::size_t count = fitting(value, argument);
      return unless(keyword == "anyOf" ? count > 0 : count == 1);
    }
    if (keyword == "if") {
      const bool holds = check(value, argument, place).empty();
      const char* branch = holds ? "then" : "else";
      return rule.contains(branch) ? check(value, rule[branch], place) : "";
    }
    if (keyword == "minimum" || keyword == "maximum") {
      return unless(!value.is_number() || (keyword == "minimum" ? value >= argument : value <= argument));
    }
    if (keyword == "minLength" || keyword == "pattern") {
      return unless(!value.is_string() ||
                    (keyword == "pattern" ? std::regex_search(value.get<std::string>(),
                                                              std::regex(argument.get<std::string>()))
                                          : value.get<std::string>().size() >= argument));
    }
    if (keyword == "minItems" || keyword == "maxItems" || keyword == "uniqueItems" || keyword == "items") {
      return value.is_array() ? check_list(value, keyword, argument, place) : "";
    }
    if (keyword == "minProperties" || keyword == "required" || keyword == "properties" ||
        keyword == "additionalProperties") {
      return value.is_object() ? check_object(value, rule, keyword, argument, place) : "";
    }
    return unless(keyword == "else" || notes.contains(keyword));  // a keyword it does not know
  }

  std::string check_list(const json& value, const std::string& keyword, const json& argument,
                         const std::string& place) const {
    std::string found;
    if (keyword == "items") {
      for (std::size_t i = 0; i < value.size(); ++i) {
        found += check(value[i], argument, fmt::format("{}/{}", place, i));
      }
      return found;
    }
    const bool holds = keyword == "minItems" ? value.size() >= argument
                       : keyword == "maxItems"
                           ? value.size() <= argument
                           : std::set<json>(value.begin(), value.end()).size() == value.size();
    return holds || argument == false ? "" : fmt::format("{}: {}\n", place, keyword);
  }

  std::string check_object(const json& value, const json& rule, const std::string& keyword,
                           const json& argument, const std::string& place) const {
    std::string found;
    if (keyword == "minProperties") {
      return value.size() >= argument ? "" : fmt::format("{}: {}\n", place, keyword);
    }
    if (keyword == "required") {
      for (const json& key : argument) {
        found += value.contains(key.get<std::string>())
                     ? ""
                     : fmt::format("{}: {} is missing\n", place, key.dump());
      }
      return found;
    }
    const json listed = rule.value("properties", json::object());
    for (const auto& [key, member] : value.items()) {
      const std::string inner = fmt::format("{}/{}", place, key);
      if (keyword == "properties" && argument.contains(key)) {
        found += check(member, argument[key], inner);
      } else if (keyword == "additionalProperties" && !listed.contains(key)) {
        found += argument == false  ? inner + ": unknown\n"
                 : argument == true ? ""
                                    : check(member, argument, inner);
      }
    }
    return found;
  }

  const json& schema_;
};

}  // namespace

std::string objections(const json& schema, const json& document) {
  return Validator(schema).check(document, schema, "");
}

}  // namespace rollcall::test
