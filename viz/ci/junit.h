#pragma once

// A test run as JUnit XML, in the dialect that GitLab, Jenkins, and the GitHub actions for tests all read: one suite,
// the file as a dotted path for the classname, and the reason both as an attribute and as text.
//
// A verdict other than the expected one is a failure; a file that is not a scenario, or a crash, is an error.

#include <iosfwd>
#include <string>

#include "viz/ci/test_outcome.h"

namespace rollcall::viz {

void junit_report(const TestRun& run, std::ostream& out);

// "scenarios.ddp.uneven" for "scenarios/ddp/uneven.json".
std::string junit_classname(const std::string& file);

}  // namespace rollcall::viz
