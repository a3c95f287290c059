#pragma once

// "Did you mean": the known word nearest to a mistyped one.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace rollcall::scenario {

// The number of letters to insert, delete, replace, or swap with their neighbor to turn one word
// into the other. Upper and lower case, and '-' and '_', count as the same letter.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, or an empty view if none is near enough to be a typing error.
// The first of equally near ones.
std::string_view suggest(std::string_view word, std::span<const std::string_view> candidates);

// The same for any list of strings.
template <typename Words>
std::string_view suggest_from(std::string_view word, const Words& candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  return suggest(word, views);
}

}  // namespace rollcall::scenario
