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
  std::size_t count = 0;
  for (auto child = children().begin(); child != children().end(); ++child) {
    ++count;
  }
  return count;
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

}  // namespace

std::string Json::pointer() const {
  std::string pointer;
  Json at = tree_->root();
  while (at.index_ != index_) {
    std::size_t position = 0;
    for (Json child : at.children()) {
      if (index_ < child.node().end) {
        pointer += '/';
        if (at.is(JsonType::object)) {
          append_escaped(pointer, child.key());
        } else {
          pointer += std::to_string(position);
        }
        at = child;
        break;
      }
      ++position;
    }
  }
  return pointer;
}

}  // namespace rollcall::scenario
