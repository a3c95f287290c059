#include "viz/ci/test_text.h"

#include <fmt/core.h>

namespace rollcall::viz {

namespace {

using Status = TestOutcome::Status;

constexpr std::size_t rule_width = 100;

// Upper case for what needs attention, so that it can be found by eye and with grep.
std::string_view word_of(Status status) {
  return status == Status::passed ? "ok" : status == Status::failed ? "FAILED" : "ERROR";
}

Look look_of(Status status) { return status == Status::passed ? Look::good : Look::error; }

std::string heading(const std::string& text) {
  const std::string shown = printable(text);
  const std::size_t width = display_width(shown) + 4;
  return fmt::format("-- {} {}\n", shown, std::string(width < rule_width ? rule_width - width : 2, '-'));
}

}  // namespace

std::string outcome_line(const TestOutcome& outcome, const TextStyle& style) {
  const std::string word = fmt::format("{:<7}", word_of(outcome.status));
  std::string line =
      fmt::format("{} {}", paint(word, look_of(outcome.status), style.color), printable(outcome.address()));
  if (style.detail == TextStyle::Detail::verbose && !outcome.verdict.empty()) {
    const std::string kind = outcome.kind.empty() || outcome.kind == "ok" ? "" : "/" + outcome.kind;
    line += paint(fmt::format("  {}{}", outcome.verdict, kind), Look::faint, style.color);
  }
  if (outcome.status == Status::passed && outcome.verdict == "ok" && !outcome.headline.empty()) {
    line += "  " + paint(printable(outcome.headline), Look::warning, style.color);
  }
  return line + "\n";
}

std::string failure_text(const TestOutcome& outcome, bool color) {
  if (outcome.status == Status::passed) {
    return {};
  }
  std::string text = "\n" + paint(heading(outcome.address()), Look::strong, color);
  for (const std::string& problem : outcome.problems) {
    text += paint(word_of(outcome.status), Look::error, color) + " " + printable(problem) + "\n";
  }
  const std::string& report = color && !outcome.shown.empty() ? outcome.shown : outcome.text;
  return report.empty() ? text : text + "\n" + report;
}

std::string summary_text(const TestRun& run, bool color) {
  std::string text = "\n";
  for (const TestOutcome& outcome : run.outcomes) {
    if (outcome.status != Status::passed) {
      text += fmt::format("{} {} - {}\n", paint(word_of(outcome.status), Look::error, color),
                          printable(outcome.address()), printable(outcome.reason()));
    }
  }
  const bool is_good = !run.interrupted && run.count(Status::passed) == run.outcomes.size();
  const std::string counts = (run.interrupted ? "interrupted: " : "") + counts_phrase(run);
  return text + paint(counts, is_good ? Look::good : Look::error, color) + "\n";
}

}  // namespace rollcall::viz
