#include "viz/base/xml_text.h"

#include <nlohmann/json.hpp>

#include "sim/base/colors.h"

namespace rollcall::viz {

namespace {

// Replaces every byte that does not belong to a character with U+FFFD.
std::string valid_utf8(std::string_view text) {
  const std::string quoted =
      nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

// U+FFFE and U+FFFF: 0xef 0xbf 0xbe and 0xef 0xbf 0xbf.
bool is_noncharacter(std::string_view text) {
  return text.starts_with("\xef\xbf\xbe") || text.starts_with("\xef\xbf\xbf");
}

}  // namespace

std::string xml_text(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  for (std::size_t i = 0; i < valid.size();) {
    const std::string_view rest = std::string_view(valid).substr(i);
    const char c = rest.front();
    const std::size_t skipped = is_noncharacter(rest) ? 3 : color_length(rest);
    if (skipped > 0) {
      i += skipped;
      continue;
    }
    ++i;
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\n' || static_cast<unsigned char>(c) >= ' ') {
      out += c;
    } else if (c == '\t' || c == '\r') {
      out += c == '\t' ? "&#9;" : "&#13;";
    }
  }
  return out;
}

}  // namespace rollcall::viz
