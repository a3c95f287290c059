#include "viz/base/text_style.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/base/utf8.h"

namespace rollcall::viz {

bool wants_color(ColorChoice choice, const Terminal& terminal) {
  if (choice != ColorChoice::automatic) {
    return choice == ColorChoice::always;
  }
  if (!terminal.no_color.empty() || terminal.term == "dumb") {
    return false;
  }
  const bool forced = !terminal.clicolor_force.empty() && terminal.clicolor_force != "0";
  return terminal.is_terminal || forced;
}

namespace {

// The parameters of ECMA-48's "select graphic rendition", by Look.
constexpr std::array<std::string_view, 7> renditions = {"", "1;31", "1;32", "33", "1", "1;34", "2"};

}  // namespace

std::string paint(std::string_view text, Look look, bool color) {
  if (!color || look == Look::plain || text.empty()) {
    return std::string(text);
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", renditions[static_cast<std::size_t>(look)], text);
}

namespace {

void append_escaped(std::string& out, unsigned char byte) {
  switch (byte) {
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += fmt::format("\\x{:02x}", byte);
  }
}

// The code of a three-byte character that changes the direction of the text after it, or that some readers take for the
// end of a line: U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. 0 for other characters.
unsigned int turning_character(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xe2' || (text[1] != '\x80' && text[1] != '\x81')) {
    return 0;
  }
  const unsigned int code =
      0x2000 + (text[1] == '\x81' ? 0x40U : 0U) + (static_cast<unsigned char>(text[2]) & 0x3fU);
  const bool turns = code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  return turns ? code : 0;
}

// The position of a line's first visible character, after blanks and our own colors.
std::size_t first_said(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size()) {
    if (line.substr(at).starts_with("\x1b[")) {
      at = std::min(line.find('m', at), line.size() - 1) + 1;
    } else if (line[at] == ' ' || line[at] == '\t') {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = character_length(text);
    const bool is_c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    const bool is_control = first < 0x20 || first == 0x7f || is_c1;  // terminals obey the C1 controls, too
    if (length == 0 || is_control) {
      append_escaped(out, first);
      text.remove_prefix(1);
    } else if (const unsigned int code = turning_character(text)) {
      out += fmt::format("\\u{:04x}", code);
      text.remove_prefix(length);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || text[at] == '\n' || text[at] == '\t') {
      out += printable(text.substr(begin, at - begin));
      out += at == text.size() ? std::string_view() : text.substr(at, 1);
      begin = at + 1;
    }
  }
  return out;
}

std::string without_commands(std::string text) {
  constexpr std::string_view old_form = "##[";
  if (text.find("::") == text.npos && text.find(old_form) == text.npos) {
    return text;
  }
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    std::string line = text.substr(begin, end - begin);
    if (const std::size_t said = first_said(line); std::string_view(line).substr(said).starts_with("::")) {
      line.insert(said, 1, '\\');
    }
    for (std::size_t at = line.find(old_form); at != line.npos; at = line.find(old_form, at + 1)) {
      line.insert(at + 2, 1, '\\');
    }
    out += line;
    begin = end;
  }
  return out;
}

std::size_t display_width(std::string_view text) { return count_characters(text); }

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (lines.empty() || !text.empty()) {
    lines.push_back(text);
  }
  return lines;
}

namespace {

// The end of the word at the beginning of `text`, including the space before it and a number after it: "rank 0" and
// "all_reduce #3" are not separated.
std::size_t end_of_word(std::string_view text, std::size_t width) {
  const std::size_t begin = text.starts_with(' ') ? 1 : 0;
  std::size_t end = text.find(' ', 1);
  while (end != std::string_view::npos && end + 1 < text.size()) {
    const char next = text[end + 1];
    const std::size_t longer = text.find(' ', end + 1);
    if ((next != '#' && (next < '0' || next > '9')) ||
        display_width(text.substr(begin, longer - begin)) > width) {
      break;
    }
    end = longer;
  }
  return end;
}

void wrap_line(std::vector<std::string>& lines, std::string_view text, std::size_t width) {
  lines.emplace_back();
  std::size_t column = 0;
  while (!text.empty()) {
    std::string_view word = text.substr(0, end_of_word(text, width));
    text.remove_prefix(word.size());
    if (column > 0 && column + display_width(word) > width) {
      lines.emplace_back();
      column = 0;
      word.remove_prefix(1);
    }
    lines.back() += word;
    column += display_width(word);
  }
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string_view line : split_lines(text)) {
    wrap_line(lines, printable(line), width);
  }
  return lines;
}

}  // namespace rollcall::viz
