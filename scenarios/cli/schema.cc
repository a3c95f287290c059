#include "scenarios/json/schema.h"
#include "scenarios/cli/cli.h"

namespace rollcall::cli {

ExitCode print_schema(const CommandLine& line) {
  emit(line, std::string(scenario::schema_text()));
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
