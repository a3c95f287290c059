#include "scenarios/json/json_tree.h"

namespace rollcall::scenario {

std::string_view to_phrase(JsonType type) {
  switch (type) {
    case JsonType::null:
      return "null";
    case JsonType::boolean:
      return "a boolean";
    case JsonType::integer:
      return "an integer";
    case JsonType::real:
      return "a floating-point number";
    case JsonType::string:
      return "a string";
    case JsonType::array:
      return "an array";
    case JsonType::object:
      return "an object";
  }
  return "a value";
}

std::size_t Json::size() const {
  return is(JsonType::object) ? value_->node->size / 2 : is(JsonType::array) ? value_->node->size : 0;
}

std::optional<Json> Json::find(std::string_view key) const {
  if (!is(JsonType::object)) {
    return std::nullopt;
  }
  for (Json member : children()) {
    if (member.key() == key) {
      return member;
    }
  }
  return std::nullopt;
}

namespace {

// RFC 6901: '~' and '/' inside a key are written "~0" and "~1".
void append_escaped(std::string& pointer, std::string_view key) {
  for (char letter : key) {
    if (letter == '~' || letter == '/') {
      pointer += letter == '~' ? "~0" : "~1";
    } else {
      pointer += letter;
    }
  }
}

// Appends the path from `at` down to `target`, whose values are in the order of the text. Returns false if it is not
// there.
bool append_way(std::string& pointer, Json at, const Json& target) {
  while (!(at == target)) {
    std::optional<Json> next;
    std::size_t position = 0;
    for (const Json& child : at.children()) {
      if (child.offset() > target.offset()) {
        break;
      }
      position += next ? 1 : 0;
      next = child;
    }
    if (!next) {
      return false;
    }
    pointer += '/';
    at.is(JsonType::object) ? append_escaped(pointer, next->key())
                            : void(pointer += std::to_string(position));
    at = *next;
  }
  return true;
}

}  // namespace

std::string Json::pointer() const {
  if (value_ == root_) {
    return {};
  }
  std::size_t position = 0;
  // Searches each child separately: a case of a matrix has members from elsewhere in the text.
  const Json root(*root_, *root_, nullptr);
  for (const Json& child : root.children()) {
    std::string pointer("/");
    root.is(JsonType::object) ? append_escaped(pointer, child.key())
                              : void(pointer += std::to_string(position++));
    if (append_way(pointer, child, *this)) {
      return pointer;
    }
  }
  return {};
}

}  // namespace rollcall::scenario
