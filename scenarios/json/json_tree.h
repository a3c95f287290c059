#pragma once

// JsonTree: a JSON document in memory that remembers the position of every value and key. Its values are
// those that recordings are read into (sim/values/value.h): texts are views of the source if nothing is
// escaped, positions cost four bytes, and JSON pointers are computed only for errors.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "sim/base/expects.h"
#include "sim/values/value.h"

namespace rollcall::scenario {

// In the order of values::Value::Kind.
enum class JsonType : std::uint8_t { null, boolean, integer, real, string, array, object };

// "an array", "a string": for messages.
std::string_view to_phrase(JsonType type);

// One value of a tree: a small handle, valid as long as the tree.
class Json {
 public:
  // A value of the document that begins with `root`. `key`: null if it is not a member of an object.
  Json(const values::Value& root, const values::Value& value, const values::Value* key)
      : root_(&root), value_(&value), key_(key) {}

  JsonType type() const { return static_cast<JsonType>(value_->kind); }
  bool is(JsonType other) const { return type() == other; }
  bool is_number() const { return is(JsonType::integer) || is(JsonType::real); }

  // The value must have the requested type; a boolean is also the integer 0 or 1. The text of another value is empty.
  bool boolean() const {
    expects(is(JsonType::boolean), "a value that is read as a boolean is one");
    return value_->integer != 0;
  }
  std::int64_t integer() const {
    expects(is(JsonType::integer) || is(JsonType::boolean), "a value that is read as an integer is one");
    return value_->integer;
  }
  double real() const {
    expects(is_number(), "a value that is read as a number is one");
    return is(JsonType::integer) ? static_cast<double>(value_->integer) : value_->real;
  }
  std::string_view text() const { return value_->as_text(); }

  std::string_view key() const { return key_ == nullptr ? std::string_view() : key_->as_text(); }
  std::size_t offset() const { return value_->offset; }
  std::size_t key_offset() const { return key_ == nullptr ? value_->offset : key_->offset; }
  // "/program/0/all_reduce".
  std::string pointer() const;

  // The elements of an array or the members of an object; otherwise empty.
  class Children;
  Children children() const;
  std::size_t size() const;
  // The member with this key; empty if there is none, or this is not an object.
  std::optional<Json> find(std::string_view key) const;
  // Sets `target` to the member with this key, if there is one: it must have the type of the target.
  template <typename Target>
  void read(std::string_view key, Target& target) const;
  template <typename Target>
  void read(std::string_view key, std::optional<Target>& target) const {
    if (find(key)) {
      read(key, target.emplace());
    }
  }

  const values::Value& value() const { return *value_; }
  friend bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

 private:
  const values::Value* root_;
  const values::Value* value_;
  const values::Value* key_;
};

template <typename Target>
void Json::read(std::string_view key, Target& target) const {
  if (const std::optional<Json> member = find(key)) {
    if constexpr (std::is_same_v<Target, bool>) {
      target = member->boolean();
    } else if constexpr (std::is_integral_v<Target>) {
      target = static_cast<Target>(member->integer());
    } else if constexpr (std::is_floating_point_v<Target>) {
      target = member->real();
    } else {
      target = member->text();
    }
  }
}

class JsonTree {
 public:
  // `root` and everything below it are in `arena`.
  JsonTree(std::unique_ptr<values::Arena> arena, const values::Value& root)
      : arena_(std::move(arena)), root_(&root) {}

  Json root() const { return Json(*root_, *root_, nullptr); }

 private:
  std::unique_ptr<values::Arena> arena_;
  const values::Value* root_;
};

class Json::Children {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Json;
    using difference_type = std::ptrdiff_t;
    using pointer = const Json*;
    using reference = Json;

    Iterator(const values::Value* root, const values::Value* at, bool has_keys)
        : root_(root), at_(at), has_keys_(has_keys) {}
    Json operator*() const { return has_keys_ ? Json(*root_, at_[1], at_) : Json(*root_, *at_, nullptr); }
    Iterator& operator++() {
      at_ += has_keys_ ? 2 : 1;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    const values::Value* root_;
    const values::Value* at_;
    bool has_keys_;
  };

  Children(Iterator begin, Iterator end) : begin_(begin), end_(end) {}
  Iterator begin() const { return begin_; }
  Iterator end() const { return end_; }

 private:
  Iterator begin_;
  Iterator end_;
};

inline Json::Children Json::children() const {
  const bool has_keys = is(JsonType::object);
  const values::Node empty;
  const values::Node& node = has_keys || is(JsonType::array) ? *value_->node : empty;
  return {{root_, node.items, has_keys}, {root_, node.items + node.size, has_keys}};
}

}  // namespace rollcall::scenario
