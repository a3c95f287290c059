#include "sim/values/value.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace rollcall::values {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

}  // namespace

BadFile::BadFile(std::size_t byte, const std::string& message) : std::runtime_error(message), offset(byte) {}

std::string BadFile::text() const {
  return offset == 0 ? what() : "byte " + std::to_string(offset) + ": " + what();
}

void* Arena::allocate(std::size_t bytes) {
  bytes = (bytes + 7) & ~std::size_t{7};
  while (chunk_ < chunks_.size() && chunks_[chunk_].size - used_ < bytes) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const std::size_t size = std::max(bytes, chunk_bytes);
    if (size > bytes_max_ - total_) {
      throw BadFile(0, "the file's contents need too much memory");
    }
    chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    total_ += size;
  }
  void* place = chunks_[chunk_].memory.get() + used_;
  used_ += bytes;
  return place;
}

void Arena::reset() {
  chunk_ = 0;
  used_ = 0;
}

Value Value::of_integer(std::int64_t value) {
  Value result;
  result.kind = Kind::integer;
  result.integer = value;
  return result;
}

Value Value::of_boolean(bool value) {
  Value result = of_integer(value ? 1 : 0);
  result.kind = Kind::boolean;
  return result;
}

Value Value::of_real(double value) {
  Value result;
  result.kind = Kind::real;
  result.real = value;
  return result;
}

Value Value::of_text(std::string_view value, std::size_t offset) {
  if (value.size() > text_bytes_max) {
    throw BadFile(offset, "a text of more than 256 MiB");
  }
  Value result;
  result.kind = Kind::text;
  result.size = static_cast<std::uint32_t>(value.size());
  result.offset = static_cast<std::uint32_t>(offset);
  result.text = value.data();
  return result;
}

Value Value::of_node(Kind kind, Node* node) {
  Value result;
  result.kind = kind;
  result.node = node;
  return result;
}

void append(Arena& arena, Node& node, const Value* items, std::size_t count) {
  const std::size_t size = node.size + count;
  if (size > std::numeric_limits<std::uint32_t>::max() / 2) {
    throw BadFile(0, "a list with too many items");
  }
  if (size > node.capacity) {
    // The first batch is usually the only one, so it gets no spare room.
    const std::size_t capacity = node.capacity == 0 ? size : std::max(size, std::size_t{2} * node.capacity);
    auto* grown = arena.allocate_array<Value>(capacity);
    std::copy(node.items, node.items + node.size, grown);
    node.items = grown;
    node.capacity = static_cast<std::uint32_t>(capacity);
  }
  std::copy(items, items + count, node.items + node.size);
  node.size = static_cast<std::uint32_t>(size);
}

const Value* find(const Value& dict, std::string_view key) {
  if (!dict.is(Value::Kind::dict)) {
    return nullptr;
  }
  for (std::uint32_t i = dict.node->size; i >= 2; i -= 2) {
    const Value& name = dict.node->items[i - 2];
    if (name.is(Value::Kind::text) && name.as_text() == key) {
      return &dict.node->items[i - 1];
    }
  }
  return nullptr;
}

}  // namespace rollcall::values
