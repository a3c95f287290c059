#include "scenarios/import/hang_values.h"

#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/import/hang_rules.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"

namespace rollcall::scenario {

OrderedJson HangValues::dtype_of(const Json& value) {
  const std::string_view text = value.is(JsonType::string) ? value.text() : std::string_view();
  const auto found = translate_hang_word(hang_dtypes(), text);
  if (!found) {
    error(value, "unknown dtype", suggest(text, words_of(hang_dtypes())));
  }
  return std::string(found.value_or("float32"));
}

OrderedJson HangValues::reduce_op_of(const Json& value) {
  const std::string_view text = value.is(JsonType::string) ? value.text() : std::string_view();
  const auto found = translate_hang_word(hang_reductions(), text);
  if (!found) {
    error(value, "unknown reduction", suggest(text, words_of(hang_reductions())));
  }
  return std::string(found.value_or("SUM"));
}

OrderedJson HangValues::duration_of(const Json& op) {
  const auto seconds = op.find("seconds");
  if (!seconds || !seconds->is_number() || seconds->real() < 0) {
    error(seconds ? *seconds : op, "\"compute\" needs \"seconds\", a number");
    return "0s";
  }
  return fmt::format("{}s", scalar(*seconds).dump());
}

OrderedJson HangValues::scalar(const Json& value) {
  switch (value.type()) {
    case JsonType::boolean:
      return value.boolean();
    case JsonType::integer:
      return value.integer();
    case JsonType::real:
      return value.real();
    case JsonType::string:
      return std::string(value.text());
    case JsonType::null:
    case JsonType::array:
    case JsonType::object:
      error(value, fmt::format("expected a number or a string, found {}", to_phrase(value.type())));
  }
  return nullptr;
}

OrderedJson HangValues::list_of(const Json& value) {
  OrderedJson list = OrderedJson::array();
  if (!value.is(JsonType::array)) {
    error(value, fmt::format("expected a list, found {}", to_phrase(value.type())));
  }
  for (Json element : value.children()) {
    list.push_back(scalar(element));
  }
  return list;
}

OrderedJson HangValues::required(const Json& op, std::string_view field) {
  const auto found = op.find(field);
  if (!found) {
    error(op, fmt::format("\"{}\" is missing", field));
    return nullptr;
  }
  return scalar(*found);
}

void HangValues::error(const Json& at, std::string message, std::string_view suggestion) {
  diagnostics_.error(at, std::move(message), suggestion);
}

}  // namespace rollcall::scenario
