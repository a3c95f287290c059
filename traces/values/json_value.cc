#include "traces/values/json_value.h"

#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/values/json_builder.h"

namespace rollcall::traces {

namespace {

constexpr std::ptrdiff_t depth_max = 64;

// Returns the position of the first bracket that leaves `depth` brackets open, or that closes one that was never
// opened; the text's size if there is none.
std::size_t bracket_to_depth(std::string_view text, std::ptrdiff_t depth) {
  std::ptrdiff_t open = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      in_text = c != '"';
      i += c == '\\' ? 1 : 0;  // an escaped character never ends a text
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{' || c == ']' || c == '}') {
      open += c == '[' || c == '{' ? 1 : -1;
      if (open == depth || open < 0) {
        return i;
      }
    }
  }
  return text.size();
}

class Builder : public values::JsonBuilder {
 public:
  Builder(std::string_view text, Arena& arena) : values::JsonBuilder(arena), text_(text) {}

  // nlohmann's parser calls these while it reads.
  bool null() { return push({}); }
  bool boolean(bool value) { return push(Value::of_boolean(value)); }
  bool number_integer(std::int64_t value) { return push(Value::of_integer(value)); }
  bool number_unsigned(std::uint64_t value) {
    const bool fits = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return push(fits ? Value::of_integer(static_cast<std::int64_t>(value))
                     : Value::of_real(static_cast<double>(value)));
  }
  bool number_float(double value, const std::string&) { return push(Value::of_real(value)); }
  bool string(const std::string& text) { return push(copy(text)); }
  bool key(const std::string& text) { return push(copy(text)); }
  bool binary(const std::vector<std::uint8_t>&) { return false; }  // does not occur in text

  bool start_object(std::size_t) { return begin(Value::Kind::dict); }
  bool start_array(std::size_t) { return begin(Value::Kind::list); }
  bool end_object() { return close().is(Value::Kind::dict); }
  bool end_array() { return close().is(Value::Kind::list); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    const std::string_view text = error.what();
    const std::size_t colon = text.find("syntax error");
    throw BadFile(position, std::string(colon == std::string_view::npos ? text : text.substr(colon)));
  }

  using values::JsonBuilder::root;

 private:
  bool begin(Value::Kind kind) {
    if (std::cmp_equal(depth(), depth_max)) {
      // The parser does not say at which byte it is.
      throw BadFile(bracket_to_depth(text_, depth_max + 1),
                    fmt::format("values nested more than {} deep", depth_max));
    }
    return open(Value::of_node(kind, nullptr));
  }

  std::string_view text_;
};

}  // namespace

Value read_json(std::string_view text, Arena& arena) {
  Builder builder(text, arena);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.root();
}

Value read_json_sequence(std::string_view text, Arena& arena) {
  const bool may_be_several =
      text.find("}{") != std::string_view::npos || text.find("}\n{") != std::string_view::npos;
  if (!may_be_several) {
    return read_json(text, arena);
  }
  std::vector<Value> values;
  for (std::size_t offset = 0; text.find_first_not_of(" \t\r\n", offset) != std::string_view::npos;) {
    const std::string_view first = text.substr(offset, bracket_to_depth(text.substr(offset), 0) + 1);
    try {
      values.push_back(read_json(first, arena));
    } catch (const BadFile& error) {
      throw BadFile(offset + error.offset, error.what());
    }
    offset += first.size();
  }
  if (values.size() == 1) {
    return values.front();
  }
  auto* node = arena.allocate_array<Node>(1);
  *node = {};
  append(arena, *node, values.data(), values.size());
  return Value::of_node(Value::Kind::list, node);
}

}  // namespace rollcall::traces
