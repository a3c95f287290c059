#pragma once

// The words of the hang library's format, and their names in scenarios.

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace rollcall::scenario {

// An op, the statement it becomes, and the fields it may have.
struct HangOpRule {
  std::string_view name;
  std::string_view statement;
  std::span<const std::string_view> fields;
};

// Null if there is no op of this name.
const HangOpRule* find_hang_op(std::string_view name);
std::vector<std::string_view> hang_op_names();

// A word of the hang library, and ours for it.
struct HangWord {
  std::string_view theirs;
  std::string_view ours;
};
std::span<const HangWord> hang_arguments();   // fields of calls, in the order in which statements have them
std::span<const HangWord> hang_dtypes();      // "f32"
std::span<const HangWord> hang_reductions();  // "sum"

// Our word for theirs; empty if the table does not have it.
std::optional<std::string_view> translate_hang_word(std::span<const HangWord> table, std::string_view word);
std::vector<std::string_view> words_of(std::span<const HangWord> table);

}  // namespace rollcall::scenario
