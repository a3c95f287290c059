#pragma once

// The calls, stacks, and groups of one or more dumps, each kept once. A table maps the bytes that identify a thing to
// its number; numbers follow the order of first use, not of a hash.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

template <typename T>
class Interner {
 public:
  // Returns the number of the thing that `key` identifies; calls `make` if it is new.
  template <typename Make>
  std::uint32_t number_of(std::string_view key, const Make& make) {
    if (const auto known = numbers_.find(key); known != numbers_.end()) {
      return known->second;
    }
    const auto number = static_cast<std::uint32_t>(things_.size());
    things_.push_back(make());
    keys_.emplace_back(key);
    numbers_.emplace(std::string(key), number);
    return number;
  }

  std::vector<T>& things() { return things_; }
  const std::vector<T>& things() const { return things_; }
  const std::string& key_of(std::uint32_t number) const { return keys_[number]; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::vector<T> things_;
  std::vector<std::string> keys_;  // by number
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
};

struct DumpTables {
  Interner<check::DumpCall> calls;
  Interner<check::DumpStack> stacks;
  Interner<check::DumpGroup> groups;

  DumpTables();  // with the empty stack, number 0

  std::uint32_t number_of(const check::DumpCall& call);
  std::uint32_t number_of(const check::DumpGroup& group);

  // Adds the contents of `other`. Translates `dump` from other's numbers to ours.
  void absorb(const DumpTables& other, check::RankDump& dump);
};

}  // namespace rollcall::traces
