#include "scenarios/json/json_substitute.h"

#include <algorithm>

namespace rollcall::scenario {

// Builds the new tree, one subtree after another.
class JsonSubstitution {
 public:
  explicit JsonSubstitution(const JsonTree& tree) : from_(tree) {
    to_.nodes_.reserve(tree.size());
    to_.nodes_.push_back(tree.node(0));
  }

  void add(const Json& value, const Json& key_of, std::string_view key) {
    const std::uint32_t first = value.index();
    const auto place = static_cast<std::uint32_t>(to_.nodes_.size());
    for (std::uint32_t i = first; i < from_.node(first).end; ++i) {
      JsonNode& node = to_.nodes_.emplace_back(from_.node(i));
      node.end = node.end - first + place;
    }
    to_.nodes_[place].key = key;
    to_.nodes_[place].key_offset = from_.node(key_of.index()).key_offset;
  }

  JsonTree finish() {
    to_.nodes_.front().end = static_cast<std::uint32_t>(to_.nodes_.size());
    return std::move(to_);
  }

 private:
  const JsonTree& from_;
  JsonTree to_;
};

JsonTree substitute(const JsonTree& tree, const std::vector<JsonMember>& members) {
  JsonSubstitution result(tree);
  for (Json member : tree.root().children()) {
    const auto other = std::ranges::find(members, member.key(), &JsonMember::key);
    result.add(other == members.end() ? member : other->value, member, member.key());
  }
  for (const JsonMember& member : members) {
    if (!tree.root().find(member.key)) {
      result.add(member.value, member.value, member.key);
    }
  }
  return result.finish();
}

}  // namespace rollcall::scenario
