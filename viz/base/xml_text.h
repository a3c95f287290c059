#pragma once

// Text for XML 1.0, which cannot hold every character, not even escaped.

#include <string>
#include <string_view>

namespace rollcall::viz {

// Returns text fit for element content and attribute values. Leaves out characters that XML forbids, and terminal
// colors; bytes that are not UTF-8 become U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace rollcall::viz
