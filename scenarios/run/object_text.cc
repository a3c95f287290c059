#include "scenarios/run/object_text.h"

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

#include <fmt/core.h>

namespace rollcall::scenario {
namespace {

std::string in_quotes(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      result += '\\';
    }
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result + quote;
}

std::string number_text(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string list_text(const ObjectList& list) {
  std::string text = "[";
  for (const Object& element : list) {
    text += (text.size() > 1 ? ", " : "") + object_text(element);
  }
  return text + "]";
}

std::string dict_text(const Object::Dict& dict) {
  std::string text = "{";
  for (const auto& [name, entry] : dict) {
    text += (text.size() > 1 ? ", " : "") + in_quotes(name) + ": " + object_text(entry);
  }
  return text + "}";
}

}  // namespace

std::string object_text(const Object& object) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>) {
          return "None";
        } else if constexpr (std::is_same_v<Held, bool>) {
          return held ? "True" : "False";
        } else if constexpr (std::is_same_v<Held, std::int64_t>) {
          return std::to_string(held);
        } else if constexpr (std::is_same_v<Held, double>) {
          return number_text(held);
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return in_quotes(held);
        } else if constexpr (std::is_same_v<Held, ObjectList>) {
          return list_text(held);
        } else {
          return dict_text(held);
        }
      },
      object.value());
}

}  // namespace rollcall::scenario
