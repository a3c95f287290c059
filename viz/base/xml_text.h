#pragma once

// Text for XML 1.0, which cannot hold every character, however it is written.

#include <string>
#include <string_view>

namespace rollcall::viz {

// Fit for element content and attribute values. Characters that XML forbids are left out, colors for terminals with
// them; bytes that are not UTF-8 become U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace rollcall::viz
