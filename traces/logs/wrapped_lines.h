#pragma once

// Lines that a terminal has wrapped, as they are in logs that people copy from a screen.

#include <optional>
#include <string>
#include <string_view>

namespace rollcall::traces {

// Puts together what torch wrote in one line. All other lines keep their numbers: an empty line stands for each that
// was joined to another. A line of which the rest is missing stays as it is. Null if all do.
std::optional<std::string> without_wraps(std::string_view bytes);

}  // namespace rollcall::traces
