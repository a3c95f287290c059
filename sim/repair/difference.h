#pragma once

// The shortest way from one list to another: where elements are left out, and where others are inserted.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rollcall::check {

// Before element `at` of the old list, elements [from, from + inserted) of the new one are inserted, and then `dropped`
// elements of the old one are left out.
struct Hunk {
  std::size_t at = 0;
  std::size_t dropped = 0;
  std::size_t from = 0;
  std::size_t inserted = 0;
};

// Lists that are cut off and would continue: nothing is known about what would follow.
struct OpenEnds {
  bool old_list = false;
  bool new_list = false;
};

// In ascending order. What one list has beyond the end of an open one is not a difference. Empty if more than
// `edits_max` elements differ in several places (E. Myers, "An O(ND) difference algorithm and its variations", 1986).
std::optional<std::vector<Hunk>> difference_of(std::span<const std::uint64_t> old_list,
                                               std::span<const std::uint64_t> new_list, std::size_t edits_max,
                                               OpenEnds open = {});

}  // namespace rollcall::check
