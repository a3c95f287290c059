#include "viz/html/markup.h"

#include <fmt/core.h>

#include "sim/base/utf8.h"
#include "viz/base/text_style.h"

namespace rollcall::viz {

namespace {

// A word may be broken after this many characters.
constexpr std::size_t word_length_max = 40;

bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

// The character at `begin` of text that is UTF-8.
std::string_view character_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < text.size() && !begins_character(text[end])) {
    ++end;
  }
  return text.substr(begin, end - begin);
}

std::string_view escaped_character(std::string_view character) {
  switch (character.front()) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return character;
  }
}

void append_escaped(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += escaped_character(text.substr(i, 1));
  }
}

// Escapes the text, with <bdi> around every run of non-ASCII characters, and with room to break long words.
void append_running_text(std::string& out, std::string_view text) {
  std::size_t word = 0;
  bool isolated = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view character = character_at(text, i);
    const bool foreign = !is_ascii(character.front());
    if (foreign != isolated) {
      out += foreign ? "<bdi>" : "</bdi>";
      isolated = foreign;
    }
    word = character == " " ? 0 : word + 1;
    if (word > word_length_max) {
      out += "<wbr>";
      word = 1;
    }
    out += escaped_character(character);
    i += character.size();
  }
  out += isolated ? "</bdi>" : "";
}

// The offset of character number `count` of UTF-8 text.
std::size_t offset_of(std::string_view text, std::size_t count) {
  std::size_t offset = 0;
  while (count > 0 && offset < text.size()) {
    offset += character_at(text, offset).size();
    --count;
  }
  return offset;
}

}  // namespace

std::string harmless(std::string_view text) {
  // The one of Unicode's direction controls (UAX #9) that printable() leaves; it, too, would let a name rearrange the
  // sentence around it.
  constexpr std::string_view arabic_letter_mark = "\u061c";
  std::string visible = printable(text);
  for (std::size_t at = visible.find(arabic_letter_mark); at != visible.npos;
       at = visible.find(arabic_letter_mark, at)) {
    visible.replace(at, arabic_letter_mark.size(), "\\u061c");
  }
  return visible;
}

std::string clipped(std::string_view text, std::size_t limit) {
  return display_width(text) <= limit ? std::string(text)
                                      : std::string(text.substr(0, offset_of(text, limit - 1))) + "\u2026";
}

void Markup::tag_with(std::string_view tag, Attributes attributes, std::string_view end) {
  out_ += '<';
  out_ += tag;
  for (const auto& [name, value] : attributes) {
    if (!value.empty()) {
      out_ += ' ';
      out_ += name;
      out_ += "=\"";
      append_escaped(out_, harmless(value));
      out_ += '"';
    }
  }
  out_ += end;
}

Markup& Markup::open(std::string_view tag, Attributes attributes) {
  tag_with(tag, attributes, ">");
  return *this;
}

Markup& Markup::close(std::string_view tag) {
  out_ += fmt::format("</{}>", tag);
  return *this;
}

Markup& Markup::single(std::string_view tag, Attributes attributes) {
  tag_with(tag, attributes, "/>");
  return *this;
}

Markup& Markup::text(std::string_view text) {
  const std::string shown = harmless(text);
  const std::size_t width = display_width(shown);
  append_running_text(out_, std::string_view(shown).substr(0, offset_of(shown, text_length_max)));
  if (width > text_length_max) {
    out_ += fmt::format("&hellip; ({} more characters)", width - text_length_max);
  }
  return *this;
}

Markup& Markup::short_text(std::string_view text, std::size_t limit) {
  append_escaped(out_, clipped(harmless(text), limit));
  return *this;
}

Markup& Markup::element(std::string_view tag, std::string_view content, Attributes attributes) {
  return open(tag, attributes).text(content).close(tag);
}

Markup& Markup::line() {
  out_ += '\n';
  return *this;
}

}  // namespace rollcall::viz
