#include "viz/ci/junit.h"

#include <algorithm>
#include <cctype>
#include <ostream>

#include <fmt/core.h>

#include "viz/base/xml_text.h"

namespace rollcall::viz {

namespace {

using Status = TestOutcome::Status;

// Milliseconds are enough, and every reader accepts fixed point.
std::string seconds(Duration duration) {
  return fmt::format("{}.{:03}", duration / second, duration % second / millisecond);
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string type_of(const TestOutcome& outcome) {
  return outcome.verdict.empty() || is_error(outcome.status) ? upper(std::string(to_string(outcome.status)))
                                                             : upper(outcome.verdict);
}

std::string body_of(const TestOutcome& outcome) {
  std::string text;
  for (const std::string& problem : outcome.problems) {
    text += problem + "\n";
  }
  text += outcome.text.empty() ? "" : "\n" + outcome.text;
  return outcome.replay.empty() || outcome.text.find(outcome.replay) != std::string::npos
             ? text
             : text + "replay: " + outcome.replay + "\n";
}

void write_case(const TestOutcome& outcome, std::ostream& out) {
  const std::string name = outcome.title.empty() ? outcome.file : outcome.title;
  out << fmt::format("    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"{}\">\n",
                     xml_text(junit_classname(outcome.file)), xml_text(name), xml_text(outcome.file),
                     std::max<std::int64_t>(outcome.place.file == outcome.file ? outcome.place.line : 1, 1),
                     seconds(outcome.elapsed));
  if (outcome.status != Status::passed) {
    const std::string_view element = is_error(outcome.status) ? "error" : "failure";
    out << fmt::format("      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n", element, type_of(outcome),
                       xml_text(outcome.reason()), xml_text(body_of(outcome)));
  }
  if (!outcome.link.empty()) {
    out << fmt::format("      <system-out>[[ATTACHMENT|{}]]</system-out>\n", xml_text(outcome.link));
  }
  out << "    </testcase>\n";
}

std::string counts(const TestRun& run) {
  return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" time=\"{}\"",
                     run.outcomes.size(), run.count(Status::failed),
                     run.count(Status::invalid) + run.count(Status::crashed), seconds(run.elapsed));
}

}  // namespace

std::string junit_classname(const std::string& file) {
  std::string name = file.substr(0, file.ends_with(".json") ? file.size() - 5 : file.size());
  while (name.starts_with("./") || name.starts_with("../") || name.starts_with("/")) {
    name.erase(0, name.find('/') + 1);
  }
  std::ranges::replace(name, '.', '_');  // a dot in a file's name would split the name
  std::ranges::replace(name, '/', '.');
  return name;
}

void junit_report(const TestRun& run, std::ostream& out) {
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out << fmt::format("<testsuites name=\"rollcall\" {}>\n", counts(run));
  out << fmt::format("  <testsuite name=\"rollcall\" {} timestamp=\"{}\">\n", counts(run),
                     xml_text(run.timestamp));
  out << fmt::format("    <properties>\n      <property name=\"command\" value=\"{}\"/>\n",
                     xml_text(run.command));
  out << fmt::format("      <property name=\"interrupted\" value=\"{}\"/>\n    </properties>\n",
                     run.interrupted);
  for (const TestOutcome& outcome : run.outcomes) {
    write_case(outcome, out);
  }
  out << "  </testsuite>\n</testsuites>\n";
}

}  // namespace rollcall::viz
