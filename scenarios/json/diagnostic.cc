#include "scenarios/json/diagnostic.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "scenarios/json/source.h"

namespace rollcall::scenario {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text = diagnostic.file;
  if (diagnostic.line > 0) {
    text += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
  }
  text += ": error: ";
  if (!diagnostic.pointer.empty()) {
    text += diagnostic.pointer + ": ";
  }
  text += diagnostic.message;
  if (!diagnostic.suggestion.empty()) {
    text += fmt::format(" (did you mean \"{}\"?)", diagnostic.suggestion);
  }
  if (!diagnostic.excerpt.empty()) {
    text += "\n" + diagnostic.excerpt;
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

void Diagnostics::error(std::size_t offset, std::string pointer, std::string message,
                        std::string_view suggestion) {
  const Position position = source_.position(offset);
  found_.push_back({.file = source_.name(),
                    .line = position.line,
                    .column = position.column,
                    .pointer = std::move(pointer),
                    .message = std::move(message),
                    .suggestion = std::string(suggestion),
                    .excerpt = source_.excerpt(offset)});
  if (found_.size() >= limit) {
    throw_if_any();
  }
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
