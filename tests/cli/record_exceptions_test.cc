// Calls that a rank of a script makes because it handles an exception.

#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/scripts.h"

namespace rollcall::test::record_exceptions_test {
namespace {

using nlohmann::json;

Outcome recorded(const Shell& shell, const std::string& name, const std::string& options) {
  return shell.rollcall("record --format json -o out.json " + options + " " + script("exceptions") + " " +
                        name);
}

std::string line_of(const std::string& mistake) { return mistake_line(mistake, "exceptions"); }

}  // namespace

TEST_CASE(
    "a rank that makes a call because it handles an exception is blamed for that, and the exception is named",
    "[record]") {
  if (!has_torch()) {
    return;
  }
  struct Job {
    std::string name;
    int culprit = 1;
    std::string options = "-n 3 --simulate";
    std::string called = "called barrier at ";
  };
  const std::vector<Job> jobs = {
      {"meets_in_finally"},
      {.name = "meets_in_finally", .options = "-n 3 --fake"},
      {.name = "meets_in_finally",
       .options = "-n 2 --simulate"},  // without the exception, either may be wrong
      {.name = "reports_in_except", .called = "called all_reduce at "},
      {.name = "leaves_a_block", .culprit = 0, .called = "called all_gather at "},
      {"waits_in_its_half"},
  };
  for (const Job& job : jobs) {
    INFO(job.name << " " << job.options);
    const Shell shell;
    const Outcome outcome = recorded(shell, job.name, job.options);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 1);
    const json report = json::parse(outcome.out);
    CHECK(report.at("culprits") == json({job.culprit}));
    CHECK(report.at("confidence") != "low");
    const std::string cause = report.at("cause");
    CHECK_THAT(cause, Contains(fmt::format("rank {} raised ValueError: bad sample at ", job.culprit)));
    CHECK_THAT(cause, Contains(line_of("fails_at")));
    CHECK_THAT(cause, Contains(job.called));
    CHECK_THAT(cause, Contains(line_of(job.name)));
    CHECK_THAT(report.at("advice").get<std::string>(), Contains("fix the exception"));
  }
}

TEST_CASE("a rank whose iterator has ended is not told to fix an exception", "[record]") {
  if (!has_torch()) {
    return;
  }
  const Shell shell;
  const Outcome outcome = recorded(shell, "asks_for_more", "-n 2 --simulate");
  INFO(outcome.out << outcome.err);
  const json report = json::parse(outcome.out);
  CHECK(report.at("culprits") == json({0}));
  const std::string cause = report.at("cause");
  CHECK_THAT(cause, Contains("rank 0 ran out of inputs at "));
  CHECK_THAT(cause, Contains(line_of("has_no_more")));
  CHECK_THAT(report.at("advice").get<std::string>(), Contains("the same number of iterations"));
}

TEST_CASE("an exception that all ranks handle, or that a rank has left behind, explains nothing",
          "[record]") {
  if (!has_torch()) {
    return;
  }
  for (const std::string name : {"runs_without_a_library", "falls_back"}) {
    INFO(name);
    const Shell shell;
    const Outcome outcome = recorded(shell, name, "-n 3 --simulate");
    INFO(outcome.out << outcome.err);
    const json report = json::parse(outcome.out);
    CHECK(report.at("culprits") == json({1}));
    CHECK_THAT(report.at("cause").get<std::string>(), !Contains("raised"));
    CHECK(report.contains("repair"));
  }
  const Shell shell;
  CHECK(recorded(shell, "ends_well", "-n 2 --simulate").code == 0);
}

}  // namespace rollcall::test::record_exceptions_test
