#pragma once

// The names of groups whose makers gave them none.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

// The names of the groups that call number `seq` of its kind on a parent makes: `given`, or g1, g2, ... for new_group,
// and names derived from the parent for split_group. If there are several, each name ends in its index.
std::vector<std::string> names_of_made(OpKind kind, std::string_view parent, std::int64_t seq,
                                       const std::string& given, std::size_t count);

}  // namespace rollcall
