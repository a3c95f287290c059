// The matrix of a scenario file: its combinations, and what each of them sets.

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "scenarios/format/cases.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/schema_check.h"
#include "scenarios/json/suggest.h"

namespace rollcall::scenario {
namespace {

constexpr std::size_t combinations_max = 10'000;
constexpr std::size_t value_max = 40;  // maximum length of a value in a name

// Fields that a matrix cannot vary: they describe the file, not the run.
constexpr std::array<std::string_view, 5> fixed_fields{"$schema", "version", "name", "tags", "matrix"};
// Names that expressions already use.
constexpr std::array<std::string_view, 5> taken_names{"rank", "local_rank", "peer", "error", "kwargs"};

bool is_field(std::string_view key) { return schema_fields().find(key).has_value(); }

// JSON without blanks and quotes.
std::string short_text(const Json& value) {
  switch (value.type()) {
    case JsonType::null:
      return "null";
    case JsonType::boolean:
      return value.boolean() ? "true" : "false";
    case JsonType::integer:
      return std::to_string(value.integer());
    case JsonType::real:
      return fmt::format("{}", value.real());
    case JsonType::string:
      return std::string(value.text());
    case JsonType::array:
    case JsonType::object:
      break;
  }
  const bool is_list = value.is(JsonType::array);
  std::string text(is_list ? "[" : "{");
  for (Json child : value.children()) {
    text += text.size() > 1 ? "," : "";
    text += is_list ? short_text(child) : fmt::format("{}:{}", child.key(), short_text(child));
  }
  return text + (is_list ? "]" : "}");
}

// "world_size=4"; "inputs=#1" for the second value if values are too long to be read in a name.
std::string parameter(std::string_view key, const Json& value, std::size_t index) {
  const std::string text = short_text(value);
  const bool is_plain =
      text.size() <= value_max && std::ranges::none_of(text, [](unsigned char c) { return c < ' '; });
  return is_plain ? fmt::format("{}={}", key, text) : fmt::format("{}=#{}", key, index);
}

bool is_identifier(std::string_view word) {
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !word.empty() && std::ranges::all_of(word, is_letter) &&
         std::isdigit(static_cast<unsigned char>(word[0])) == 0;
}

// The first value that occurs earlier in the list: two cases of one name could not be
// distinguished.
std::optional<Json> repeated_value(const Json& values) {
  std::set<std::string> seen;
  for (Json value : values.children()) {
    if (!seen.insert(short_text(value)).second) {
      return value;
    }
  }
  return std::nullopt;
}

// True if the matrix has lists of values, none of which is empty or has a value twice, and not too
// many combinations.
bool is_sound(const std::optional<Json>& matrix) {
  if (!matrix || !matrix->is(JsonType::object)) {
    return false;
  }
  std::size_t count = 1;
  for (Json values : matrix->children()) {
    count *= values.is(JsonType::array) ? values.size() : 0;
    if (count == 0 || count > combinations_max || repeated_value(values)) {
      return false;
    }
  }
  return true;
}

void check_variable(const Json& values, Diagnostics& diagnostics) {
  const std::string_view key = values.key();
  if (const std::string_view nearest = suggest(key, keys_of(schema_fields())); !nearest.empty()) {
    diagnostics.error_at_key(
        values, fmt::format("\"{}\" is not a scenario field, but too similar to one to be a variable", key),
        nearest);
  } else if (!is_identifier(key) || std::ranges::find(taken_names, key) != taken_names.end()) {
    diagnostics.error_at_key(
        values, fmt::format("\"{}\" is neither a scenario field nor a valid variable name", key));
  }
  for (Json value : values.children()) {
    if (!value.is(JsonType::integer)) {
      diagnostics.error(value, fmt::format("\"{}\" is a variable, and variables are integers", key));
    }
  }
}

}  // namespace

std::vector<Combination> combinations_of(const Json& root) {
  std::vector<Combination> combinations(1);
  const auto matrix = root.find("matrix");
  if (!is_sound(matrix)) {
    return combinations;
  }
  for (Json values : matrix->children()) {
    std::vector<Combination> longer;
    for (const Combination& combination : combinations) {
      std::size_t index = 0;
      for (Json value : values.children()) {
        Combination& next = longer.emplace_back(combination);
        next.parameters += (next.parameters.empty() ? "" : ",") + parameter(values.key(), value, index++);
        if (is_field(values.key())) {
          next.fields.push_back({values.key(), value});
        } else if (value.is(JsonType::integer)) {
          next.constants.emplace_back(values.key(), value.integer());
        }
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

void check_matrix(const Json& root, Diagnostics& diagnostics) {
  const auto matrix = root.find("matrix");
  if (!matrix) {
    return;
  }
  for (Json values : matrix->children()) {
    if (std::ranges::find(fixed_fields, values.key()) != fixed_fields.end()) {
      diagnostics.error_at_key(values, fmt::format("a matrix cannot vary \"{}\"", values.key()));
    } else if (!is_field(values.key())) {
      check_variable(values, diagnostics);
    }
    if (const std::optional<Json> value = repeated_value(values)) {
      diagnostics.error(*value, fmt::format("\"{}\" has this value already", values.key()));
    }
  }
  if (diagnostics.empty() && !is_sound(matrix)) {
    diagnostics.error(*matrix, fmt::format("a matrix has at most {} cases", combinations_max));
  }
}

}  // namespace rollcall::scenario
