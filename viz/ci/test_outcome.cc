#include "viz/ci/test_outcome.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "viz/rows/phrases.h"

namespace rollcall::viz {

std::string TestOutcome::address() const { return title.empty() ? file : file + "::" + title; }

std::string TestOutcome::reason() const {
  if (status == Status::passed) {
    return {};
  }
  const std::string problem = problems.empty() ? "" : problems.front();
  return headline.empty() ? problem : fmt::format("{}: {}", problem, headline);
}

std::size_t TestRun::count(TestOutcome::Status status) const {
  return static_cast<std::size_t>(std::ranges::count(outcomes, status, &TestOutcome::status));
}

std::string_view to_string(TestOutcome::Status status) {
  constexpr std::array<std::string_view, 4> words = {"passed", "failed", "invalid", "crashed"};
  return words[static_cast<std::size_t>(status)];
}

bool is_error(TestOutcome::Status status) {
  return status == TestOutcome::Status::invalid || status == TestOutcome::Status::crashed;
}

std::string counts_phrase(const TestRun& run) {
  using Status = TestOutcome::Status;
  const std::size_t errors = run.count(Status::invalid) + run.count(Status::crashed);
  const std::size_t missing = run.selected - run.outcomes.size();
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const std::size_t failed = run.count(Status::failed); failed > 0) {
    add(fmt::format("{} failed", failed));
  }
  if (errors > 0) {
    add(count_phrase(static_cast<std::int64_t>(errors), "error"));
  }
  if (const std::size_t passed = run.count(Status::passed); passed > 0 || text.empty()) {
    add(fmt::format("{} passed", passed));
  }
  if (missing > 0) {
    add(fmt::format("{} not run", missing));
  }
  if (run.deselected > 0) {
    add(fmt::format("{} deselected", run.deselected));
  }
  return text;
}

}  // namespace rollcall::viz
