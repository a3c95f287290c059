#pragma once

// A foreign file as a tree of plain values, whatever its format. The tree lives in an Arena and borrows the text of the
// file, so that a thread reads thousands of files with one allocation; nothing in it can run, and walking it needs no
// recursion beyond what a caller asks for.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall::values {

// A file that cannot be read, and the offset at which that became clear.
struct BadFile : std::runtime_error {
  BadFile(std::size_t byte, const std::string& message);
  std::string text() const;  // "byte 12: ..."; without the place if that is the whole file
  std::size_t offset;
};

// Memory that is released all at once. Throws BadFile rather than grow past its limit, so that a small file cannot ask
// for a large machine.
class Arena {
 public:
  explicit Arena(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void* allocate(std::size_t bytes);  // aligned to 8
  template <typename T>
  T* allocate_array(std::size_t count) {
    static_assert(alignof(T) <= 8);
    return static_cast<T*>(allocate(count * sizeof(T)));
  }
  // Invalidates everything handed out; the next file reuses the memory.
  void reset();

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size = 0;
  };

  std::size_t bytes_max_;
  std::size_t total_ = 0;  // of all chunks
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // the one in use
  std::size_t used_ = 0;   // bytes used of that chunk
};

struct Value;

// The items of a list, or the keys and values of a dict, which alternate. Shared by every Value that refers to the same
// container.
struct Node {
  Value* items = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;
};

struct Value {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, list, dict };

  static constexpr std::size_t text_bytes_max = (std::size_t{1} << 28) - 1;

  Value() = default;

  Kind kind : 4 = Kind::none;
  std::uint32_t size : 28 = 0;  // text: its bytes
  std::uint32_t offset = 0;     // of its first character, where the caller asks for it (scenarios/json)
  union {
    std::int64_t integer = 0;  // also of a boolean
    double real;
    const char* text;  // borrowed from the file or the arena
    Node* node;        // list (tuples are lists), dict
  };

  static Value of_integer(std::int64_t value);
  static Value of_boolean(bool value);
  static Value of_real(double value);
  // Throws BadFile when the text is too long.
  static Value of_text(std::string_view value, std::size_t offset = 0);
  static Value of_node(Kind kind, Node* node);

  bool is(Kind other) const { return kind == other; }
  std::string_view as_text() const { return {text, size}; }
};

static_assert(sizeof(Value) == 16, "recordings have many millions of them");

// Appends to a container; its items move when they have to grow.
void append(Arena& arena, Node& node, const Value* items, std::size_t count);

// The value of `key`, the last one if the key occurs twice; null if it does not occur.
const Value* find(const Value& dict, std::string_view key);

}  // namespace rollcall::values
