#pragma once

// What groups are called whose makers gave them no name.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/c10d/op.h"

namespace rollcall {

// Of the groups that the n-th such call on a parent makes: `given`, or g1, g2, ... for new_group, and names after their
// parent for split_group. Of several, each has its index behind.
std::vector<std::string> names_of_made(OpKind kind, std::string_view parent, std::int64_t seq,
                                       const std::string& given, std::size_t count);

}  // namespace rollcall
