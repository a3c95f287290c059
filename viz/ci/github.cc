#include "viz/ci/github.h"

#include <algorithm>

#include <fmt/core.h>

#include "viz/base/text_style.h"

namespace rollcall::viz {

namespace {

using Status = TestOutcome::Status;

// See escapeData and escapeProperty in packages/core/src/command.ts of https://github.com/actions/toolkit.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    const bool is_special = c == '%' || c == '\r' || c == '\n' || special.find(c) != std::string_view::npos;
    out += is_special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

std::string property(std::string_view text) { return escaped(printable(text), ":,"); }

std::string annotation(const TestOutcome& outcome) {
  std::string message = outcome.reason();
  if (!outcome.replay.empty()) {
    message += "\nreplay: " + outcome.replay;
  }
  std::string place =
      fmt::format("file={}", property(outcome.place.file.empty() ? outcome.file : outcome.place.file));
  if (outcome.place.line > 0) {
    place +=
        fmt::format(",line={},col={}", outcome.place.line, std::max<std::int64_t>(outcome.place.column, 1));
  }
  return fmt::format("::error {},title={}::{}\n", place,
                     property(outcome.title.empty() ? outcome.file : outcome.title), escaped(message, ""));
}

// Escapes text for one line of a table, so that Markdown and HTML leave it alone.
std::string cell(std::string_view text) {
  constexpr std::string_view special = R"(|\`*_[]#~@)";
  std::string out;
  for (const char c : printable(text)) {
    if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
    } else if (special.find(c) != std::string_view::npos) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

// Fences the text with more backticks than it contains.
std::string fenced(const std::string& text) {
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) {
    fence += '`';
  }
  return fmt::format("{}text\n{}{}{}\n", fence, text, text.ends_with('\n') ? "" : "\n", fence);
}

std::string detail(const TestOutcome& outcome) {
  const std::string body = outcome.text.empty() ? outcome.reason() : outcome.text;
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n", cell(outcome.address()),
                     fenced(body));
}

}  // namespace

std::string github_annotations(const TestRun& run) {
  std::string text;
  for (const TestOutcome& outcome : run.outcomes) {
    text += outcome.status == Status::passed ? "" : annotation(outcome);
  }
  return text;
}

std::string markdown_summary(const TestRun& run) {
  constexpr std::size_t limit = 1000 * 1000;  // GitHub takes 1 MiB of each step
  constexpr std::string_view rest = "\nThe rest is left out, because it does not fit in a summary.\n";
  std::string text =
      fmt::format("## rollcall: {}{}\n\n", counts_phrase(run), run.interrupted ? " (interrupted)" : "");
  const auto add = [&](const std::string& part) {
    const bool fits = text.size() + part.size() + rest.size() <= limit;
    text += fits ? part : "";
    return fits;
  };
  if (run.count(Status::passed) == run.outcomes.size()) {
    return text;
  }
  add("| scenario | verdict | reason |\n|---|---|---|\n");
  for (const TestOutcome& outcome : run.outcomes) {
    const std::string verdict =
        outcome.verdict.empty() ? std::string(to_string(outcome.status)) : outcome.verdict;
    if (outcome.status != Status::passed && !add(fmt::format("| {} | {} | {} |\n", cell(outcome.address()),
                                                             cell(verdict), cell(outcome.reason())))) {
      return text + std::string(rest);
    }
  }
  add("\n");
  for (const TestOutcome& outcome : run.outcomes) {
    if (outcome.status != Status::passed && !add(detail(outcome))) {
      return text + std::string(rest);
    }
  }
  return text;
}

}  // namespace rollcall::viz
