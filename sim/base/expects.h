#pragma once

// Assertions about rollcall itself. They stay on in every build: a simulator that continues after an impossible state
// gives wrong verdicts, which is worse than stopping. A misbehaving *user program* never ends here; it gets a verdict.

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace rollcall {

[[noreturn]] inline void fail_expectation(const char* what, const std::source_location& where) {
  std::fprintf(stderr, "rollcall: internal error: %s (%s:%u). Please report this.\n", what, where.file_name(),
               static_cast<unsigned>(where.line()));
  std::abort();
}

// `what` is a sentence that says what must hold.
inline void expects(bool condition, const char* what,
                    std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]] {
    fail_expectation(what, where);
  }
}

}  // namespace rollcall
