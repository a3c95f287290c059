#pragma once

// JsonTree: a JSON document in memory that remembers where every value and key stands.
//
// Values lie in one array in document order, each followed by its children; a container knows where
// its subtree ends. Texts are views of the source wherever nothing is escaped. So reading 100 MiB
// makes few allocations, positions cost four bytes, and JSON pointers are worked out only for errors.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::scenario {

enum class JsonType : std::uint8_t { null, boolean, integer, real, string, array, object };

// "an array", "a string": for messages.
std::string_view to_phrase(JsonType type);

struct JsonNode {
  std::string_view key;  // members of an object
  union {
    std::int64_t integer = 0;  // integer and boolean
    double real;
  };
  std::string_view text;         // string
  std::uint32_t offset = 0;      // of the value's first character
  std::uint32_t key_offset = 0;  // of the key's opening quote
  std::uint32_t end = 0;         // index past the subtree
  JsonType type = JsonType::null;
};

class JsonTree;

// One value of a tree: a small handle, valid as long as the tree.
class Json {
 public:
  Json(const JsonTree& tree, std::uint32_t index) : tree_(&tree), index_(index) {}

  JsonType type() const { return node().type; }
  bool is(JsonType type) const { return node().type == type; }
  bool is_number() const { return is(JsonType::integer) || is(JsonType::real); }

  // The value must have the type asked for.
  bool boolean() const { return node().integer != 0; }
  std::int64_t integer() const { return node().integer; }
  double real() const { return is(JsonType::integer) ? static_cast<double>(node().integer) : node().real; }
  std::string_view text() const { return node().text; }

  std::string_view key() const { return node().key; }
  std::size_t offset() const { return node().offset; }
  std::size_t key_offset() const { return node().key_offset; }
  // "/program/0/all_reduce". O(values before this one).
  std::string pointer() const;

  // The elements of an array, the members of an object, nothing otherwise.
  class Children;
  Children children() const;
  std::size_t size() const;  // O(children)
  // The member called `key`; nothing when there is none or this is not an object.
  std::optional<Json> find(std::string_view key) const;

  std::uint32_t index() const { return index_; }
  friend bool operator==(const Json& a, const Json& b) { return a.tree_ == b.tree_ && a.index_ == b.index_; }

 private:
  const JsonNode& node() const;

  const JsonTree* tree_;
  std::uint32_t index_;
};

class JsonTree {
 public:
  Json root() const { return Json(*this, 0); }
  const JsonNode& node(std::uint32_t index) const { return nodes_[index]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  friend class JsonTreeBuilder;
  friend class JsonSubstitution;

  std::vector<JsonNode> nodes_;
  std::deque<std::string> unescaped_;  // texts that differ from their source; never moves
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

    Iterator(const JsonTree& tree, std::uint32_t index) : tree_(&tree), index_(index) {}
    Json operator*() const { return Json(*tree_, index_); }
    Iterator& operator++() {
      index_ = tree_->node(index_).end;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    const JsonTree* tree_;
    std::uint32_t index_;
  };

  Children(const JsonTree& tree, std::uint32_t first, std::uint32_t last)
      : tree_(&tree), first_(first), last_(last) {}
  Iterator begin() const { return {*tree_, first_}; }
  Iterator end() const { return {*tree_, last_}; }

 private:
  const JsonTree* tree_;
  std::uint32_t first_;
  std::uint32_t last_;
};

inline const JsonNode& Json::node() const { return tree_->node(index_); }
inline Json::Children Json::children() const { return {*tree_, index_ + 1, node().end}; }

}  // namespace rollcall::scenario
