#include "scenarios/json/json_substitute.h"

#include <algorithm>
#include <limits>

namespace rollcall::scenario {

JsonTree substitute(const JsonTree& tree, const std::vector<JsonMember>& members) {
  using values::Value;
  std::vector<Value> items;
  for (const Json& member : tree.root().children()) {
    const auto other = std::ranges::find(members, member.key(), &JsonMember::key);
    items.push_back(Value::of_text(member.key(), member.key_offset()));
    items.push_back(other == members.end() ? member.value() : other->value.value());
  }
  for (const JsonMember& member : members) {
    if (!tree.root().find(member.key)) {
      items.push_back(Value::of_text(member.key, member.value.key_offset()));
      items.push_back(member.value.value());
    }
  }
  auto arena = std::make_unique<values::Arena>(std::numeric_limits<std::size_t>::max());
  auto* root = arena->allocate_array<Value>(1);
  *root = tree.root().value();
  root->node = arena->allocate_array<values::Node>(1);
  *root->node = {};
  append(*arena, *root->node, items.data(), items.size());
  return {std::move(arena), *root};
}

}  // namespace rollcall::scenario
