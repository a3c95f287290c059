#pragma once

// Which rank a dump is of. Nothing in the file says so; its name does, among host names and dates.

#include <optional>
#include <string_view>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// The last number in the file's name, unless that is not a member of the groups the dump belongs to and
// another number of the name is: `groups` are those in its pg_config. Nothing when there is no number.
std::optional<Rank> rank_in_name(std::string_view path, const std::vector<check::DumpGroup>& groups);

}  // namespace rollcall::traces
