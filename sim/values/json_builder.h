#pragma once

// Collects the values of JSON text while nlohmann's parser reads it. The items of open containers wait on one stack; a
// container is built when it ends. Derived classes handle the parser's events.

#include <cstring>
#include <string_view>
#include <vector>

#include "sim/values/value.h"

namespace rollcall::values {

class JsonBuilder {
 protected:
  explicit JsonBuilder(Arena& arena) : arena_(arena) {}

  bool push(Value value) {
    stack_.push_back(value);
    return true;
  }

  // Opens a list or dict, empty so far. Values pushed from now on go into it: for a dict, keys and values alternate.
  bool open(Value container) {
    open_.push_back(stack_.size());
    return push(container);
  }
  Value& close() {
    const std::size_t begin = open_.back();
    open_.pop_back();
    auto* node = arena_.allocate_array<Node>(1);
    *node = {};
    append(arena_, *node, stack_.data() + begin + 1, stack_.size() - begin - 1);
    stack_.resize(begin + 1);
    stack_.back().node = node;
    return stack_.back();
  }
  std::size_t depth() const { return open_.size(); }
  // The open container that the next value goes into.
  const Value& innermost() const { return stack_[open_.back()]; }

  Value copy(std::string_view text) {
    auto* place = arena_.allocate_array<char>(text.size());
    std::memcpy(place, text.data(), text.size());
    return Value::of_text({place, text.size()});
  }

  // The whole document, once all containers are closed.
  Value root() const { return stack_.empty() ? Value() : stack_.front(); }

  Arena& arena_;
  std::vector<Value> stack_;

 private:
  std::vector<std::size_t> open_;  // the positions of the open containers in `stack_`
};

}  // namespace rollcall::values
