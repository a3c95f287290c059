#pragma once

// Writes HTML and SVG one element at a time. Tags and attribute names are the program's own; texts and
// attribute values may come from anywhere, and there is no way to write them unescaped.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace rollcall::viz {

class Markup {
 public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // "<tag name="value">" and "</tag>". Attributes with an empty value are left out.
  Markup& open(std::string_view tag, Attributes attributes = {});
  Markup& close(std::string_view tag);
  // A start tag and nothing else: <meta>, <link>; in SVG "<path/>".
  Markup& single(std::string_view tag, Attributes attributes);

  // Text between tags. Control characters and direction controls are written out; foreign scripts are isolated from
  // the text around them; long words may be broken. Of a text longer than `text_length_max` characters, the rest is
  // only counted.
  Markup& text(std::string_view text);
  static constexpr std::size_t text_length_max = 1000;
  // The same without isolation and breaks, which SVG, <title>, and <textarea> do not support, cut to `limit`.
  Markup& short_text(std::string_view text, std::size_t limit);

  // open, text, close.
  Markup& element(std::string_view tag, std::string_view content, Attributes attributes = {});
  // A line break in the file, for readers of the source.
  Markup& line();

  const std::string& str() const { return out_; }

 private:
  void tag_with(std::string_view tag, Attributes attributes, std::string_view end);

  std::string out_;
};

// Returns `text` with control characters and direction controls written out; always valid UTF-8.
std::string harmless(std::string_view text);

// Returns at most `limit` characters of `text`, ending in an ellipsis if it was cut.
std::string clipped(std::string_view text, std::size_t limit);

}  // namespace rollcall::viz
