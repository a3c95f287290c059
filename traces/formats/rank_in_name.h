#pragma once

// Finds which rank a dump is from. The file's content does not say; its name does, among host names and
// dates.

#include <optional>
#include <string_view>

#include "sim/diagnose/dump.h"

namespace rollcall::traces {

// Returns the number behind "rank" in the file's name, else the first of "3-of-4", else the last number, unless it is
// not a member of the dump's groups and another number in the name is: `groups` are those in its pg_config. Empty if
// there is no number.
std::optional<Rank> rank_in_name(std::string_view path, const std::vector<check::DumpGroup>& groups);

}  // namespace rollcall::traces
