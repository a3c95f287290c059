#pragma once

// Whether a command has left processes behind.

#include <string>

namespace rollcall::test {

// True if a process with this word among its arguments still runs after 5 seconds. The kernel ends the children of a
// process that has ended, but maybe a moment later.
bool stays_running(const std::string& word);

}  // namespace rollcall::test
