#pragma once

// A test run as JUnit XML, in the dialect that GitLab, Jenkins and the GitHub actions for tests all read: one suite, a
// classname that is the file as a path of dots, and the reason both as an attribute and as text.
//
// A verdict other than the expected one is a failure; a file that is not a scenario, and a crash, are errors.

#include <iosfwd>
#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

void junit_report(const TestRun& run, std::ostream& out);

// "scenarios.ddp.uneven" for "scenarios/ddp/uneven.json".
std::string junit_classname(const std::string& file);

}  // namespace rollcall::viz
