#pragma once

// "Did you mean": the known word nearest to a mistyped one.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
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

// The same for any list of strings, or of what has one.
template <typename List, typename Projection = std::identity>
std::string_view suggest_from(std::string_view word, List&& candidates, Projection projection = {}) {
  std::vector<std::string_view> views;
  std::ranges::transform(candidates, std::back_inserter(views), projection);
  return suggest(word, views);
}

}  // namespace rollcall::scenario
