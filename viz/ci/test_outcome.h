#pragma once

// The outcomes of a test run: each TestOutcome is a scenario, or the reason why it could not run. All writers of test
// reports (terminal, JUnit, SARIF, GitHub, Markdown, JSON, HTML) see only these.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.h"

namespace rollcall::viz {

// A place in a file. Line 0: no particular line.
struct SourcePlace {
  std::string file;
  std::int64_t line = 0;
  std::int64_t column = 0;
  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

struct TestOutcome {
  enum class Status {
    passed,
    failed,   // did not meet its expectations, or did not finish in time
    invalid,  // the file is not a scenario
    crashed,  // rollcall's own fault
  };
  // The last calls of ranks that made the same calls.
  struct Calls {
    struct Call {
      std::string text;
      SourcePlace place;
    };
    std::string ranks;  // "ranks 1-3"
    std::vector<Call> calls;
  };

  Status status = Status::passed;
  std::string file;
  std::string title;  // "uneven inputs[world_size=4]"; empty if the file cannot be read
  std::vector<std::string> tags;
  SourcePlace place;     // where it went wrong, or the place of the expectation
  std::string verdict;   // "deadlock"; empty if it has none
  std::string kind;      // "missing_participant"
  std::string headline;  // the finding in one sentence, or why a success means little; may be empty
  std::vector<std::string> problems;  // what is wrong, one sentence each
  std::string text;                   // the report for a person, or another text to read; without color
  std::string shown;                  // the same in color; empty without color
  std::string json;                   // the report's JSON object, or one with "errors"
  std::string page;                   // the report as HTML; empty unless asked for
  std::string link;                   // path to that page from the overview; may be empty
  std::string replay;                 // the command that reproduces it
  std::uint64_t seed = 0;
  std::vector<Calls> calls;  // of a failure
  Duration elapsed = 0;      // wall-clock time

  std::string address() const;  // "FILE::title"
  // The first thing to know about a failure, in one line.
  std::string reason() const;
};

struct TestRun {
  std::vector<TestOutcome> outcomes;  // in order of selection
  std::size_t selected = 0;           // number of scenarios that should run
  std::size_t deselected = 0;
  bool interrupted = false;
  std::string timestamp;  // when the run began, "2026-11-21T06:10:00"
  Duration elapsed = 0;
  std::string command;  // what the user ran

  std::size_t count(TestOutcome::Status status) const;
};

std::string_view to_string(TestOutcome::Status status);  // "passed", "failed", "invalid", "crashed"
bool is_error(TestOutcome::Status status);               // neither passed nor failed

// "1 failed, 2 errors, 170 passed, 3 deselected".
std::string counts_phrase(const TestRun& run);

}  // namespace rollcall::viz
