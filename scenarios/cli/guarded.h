#pragma once

// Runs a whole command, and turns errors into one line and an exit code.

#include "scenarios/cli/cli.h"

namespace rollcall::cli {

// Throws nothing, and needs no memory to report that memory has run out. An exception that is thrown where none may be
// thrown ends the process in the same way.
ExitCode guarded(int argc, const char* const* argv) noexcept;

}  // namespace rollcall::cli
