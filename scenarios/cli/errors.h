#pragma once

// Shows what is wrong with a scenario file.

namespace rollcall::scenario {
class InvalidScenario;
}

namespace rollcall::cli {

struct CommandLine;

// As text on standard error; with --format json as an object on standard output, in place of the
// report:
//   { "schema_version": 1, "errors": [ { "file", "line", "column", "pointer", "message", "suggestion" } ] }
void show_diagnostics(const CommandLine& line, const scenario::InvalidScenario& error);

}  // namespace rollcall::cli
