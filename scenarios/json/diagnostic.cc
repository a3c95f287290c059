#include "scenarios/json/diagnostic.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "scenarios/json/json_tree.h"
#include "scenarios/json/source.h"
#include "sim/base/utf8.h"
#include "viz/base/text_style.h"

namespace rollcall::scenario {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text = viz::printable(diagnostic.file);
  if (diagnostic.line > 0) {
    text += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
  }
  text += ": error: ";
  if (!diagnostic.pointer.empty()) {
    text += viz::printable(diagnostic.pointer) + ": ";
  }
  text += viz::printable(diagnostic.message);
  if (!diagnostic.suggestion.empty()) {
    text += fmt::format(" (did you mean \"{}\"?)", diagnostic.suggestion);
  }
  if (!diagnostic.excerpt.empty()) {
    text += "\n" + viz::printable_lines(diagnostic.excerpt);
  }
  return text;
}

InvalidScenario::InvalidScenario(std::vector<Diagnostic> diagnostics) : diagnostics_(std::move(diagnostics)) {
  for (const Diagnostic& diagnostic : diagnostics_) {
    text_ += (text_.empty() ? "" : "\n") + to_string(diagnostic);
  }
  if (diagnostics_.size() >= Diagnostics::limit) {
    text_ += fmt::format("\n{}: error: more may follow; the first {} are shown", diagnostics_.front().file,
                         Diagnostics::limit);
  }
}

namespace {

// Keys and names in a file can have any length; messages cannot. Cuts between characters.
std::string clipped(std::string text) {
  constexpr std::size_t longest = 400;
  if (text.size() > longest) {
    text.resize(character_start(text, longest));
    text += "…";
  }
  return text;
}

}  // namespace

void Diagnostics::error(std::size_t offset, std::string pointer, std::string message,
                        std::string_view suggestion) {
  const Position position = source_.position(offset);
  Diagnostic diagnostic{.file = source_.name(),
                        .line = position.line,
                        .column = position.column,
                        .pointer = clipped(std::move(pointer)),
                        .message = clipped(std::move(message)),
                        .suggestion = std::string(suggestion),
                        .excerpt = source_.excerpt(offset)};
  if (std::find(found_.begin(), found_.end(), diagnostic) == found_.end()) {  // two passes may find it
    found_.push_back(std::move(diagnostic));
  }
  if (found_.size() >= limit) {
    throw_if_any();
  }
}

void Diagnostics::error(const Json& value, std::string message, std::string_view suggestion) {
  error(value.offset(), value.pointer(), std::move(message), suggestion);
}

void Diagnostics::error_at_key(const Json& member, std::string message, std::string_view suggestion) {
  error(member.key_offset(), member.pointer(), std::move(message), suggestion);
}

void Diagnostics::throw_if_any() {
  if (found_.empty()) {
    return;
  }
  std::stable_sort(found_.begin(), found_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  throw InvalidScenario(std::move(found_));
}

}  // namespace rollcall::scenario
