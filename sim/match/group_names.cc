#include "sim/match/group_names.h"

#include <fmt/core.h>

namespace rollcall {

std::vector<std::string> names_of_made(OpKind kind, std::string_view parent, std::int64_t seq,
                                       const std::string& given, std::size_t count) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string index = count == 1 ? "" : std::to_string(i);
    if (!given.empty()) {
      made.push_back(given + index);
    } else if (kind == OpKind::new_group) {
      made.push_back(fmt::format("g{}", seq + 1));
    } else {
      made.push_back(fmt::format("{}.split{}{}{}", parent, seq, index.empty() ? "" : ".", index));
    }
  }
  return made;
}

}  // namespace rollcall
