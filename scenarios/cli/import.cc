#include "scenarios/cli/cli.h"

#include <fmt/format.h>

#include "scenarios/cli/errors.h"
#include "scenarios/import/hang.h"
#include "scenarios/json/diagnostic.h"

namespace rollcall::cli {

ExitCode import_file(const CommandLine& line) {
  if (line.word != "hang") {
    throw UsageError(fmt::format(
        "nothing imports '{}'; `rollcall import hang FILE` reads a file of the hang library", line.word));
  }
  using scenario::HangVariant;
  try {
    emit(line, scenario::import_hang(line.file, line.fixed ? HangVariant::fixed : HangVariant::failing));
    return ExitCode::as_expected;
  } catch (const scenario::InvalidScenario& error) {
    show_diagnostics(line, error);
    return ExitCode::invalid;
  }
}

}  // namespace rollcall::cli
