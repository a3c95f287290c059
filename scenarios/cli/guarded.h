#pragma once

// A whole command, and what goes wrong in it as one line and an exit code.

#include "scenarios/cli/cli.h"

namespace rollcall::cli {

// Throws nothing, and needs no memory to say that there is none. What is thrown where nothing may be thrown ends the
// process in the same way.
ExitCode guarded(int argc, const char* const* argv) noexcept;

}  // namespace rollcall::cli
