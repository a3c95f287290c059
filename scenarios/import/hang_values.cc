#include "scenarios/import/hang_values.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"

namespace rollcall::scenario {

namespace {

constexpr std::array<HangWord, 8> dtypes{{{"f16", "float16"},
                                          {"bf16", "bfloat16"},
                                          {"f32", "float32"},
                                          {"f64", "float64"},
                                          {"i32", "int32"},
                                          {"i64", "int64"},
                                          {"u8", "uint8"},
                                          {"i8", "int8"}}};

constexpr std::array<HangWord, 9> reductions{{{"sum", "SUM"},
                                              {"avg", "AVG"},
                                              {"mean", "AVG"},
                                              {"prod", "PRODUCT"},
                                              {"product", "PRODUCT"},
                                              {"min", "MIN"},
                                              {"max", "MAX"},
                                              {"band", "BAND"},
                                              {"bor", "BOR"}}};

}  // namespace

OrderedJson HangValues::translated(const Json& value, std::string_view what, std::span<const HangWord> table,
                                   std::string_view otherwise) {
  const std::string_view text = value.is(JsonType::string) ? value.text() : std::string_view();
  const auto found = std::ranges::find(table, text, &HangWord::theirs);
  if (found == table.end()) {
    error(value, fmt::format("unknown {}", what), suggest_from(text, table, &HangWord::theirs));
  }
  return std::string(found == table.end() ? otherwise : found->ours);
}

OrderedJson HangValues::dtype_of(const Json& value) { return translated(value, "dtype", dtypes, "float32"); }

OrderedJson HangValues::reduce_op_of(const Json& value) {
  return translated(value, "reduction", reductions, "SUM");
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
