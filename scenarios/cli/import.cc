// `rollcall import`: converts files of another kind to a scenario.

#include <filesystem>

#include <fmt/core.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/dump_files.h"
#include "scenarios/import/hang.h"
#include "scenarios/recordings/imported_job.h"
#include "sim/diagnose/dump_judge.h"

namespace rollcall::cli {

namespace {

ExitCode import_hang_file(const CommandLine& line, const std::string& file) {
  using scenario::HangVariant;
  emit(line, scenario::import_hang(file, line.fixed ? HangVariant::fixed : HangVariant::failing));
  return ExitCode::as_expected;
}

ExitCode import_recordings(const CommandLine& line, const std::vector<std::string>& paths) {
  const traces::ReadResult input = read_dumps(line, paths);
  if (input.job.ranks.empty()) {
    return no_dumps(input, paths);
  }
  const scenario::ImportedJob imported = scenario::import_dumps(input.job, check::judge_dump(input.job));
  if (imported.text.empty()) {
    throw UsageError(imported.remark);
  }
  emit(line, imported.text);
  if (!imported.remark.empty()) {
    remark("rollcall: " + imported.remark);
  }
  return ExitCode::as_expected;
}

}  // namespace

ExitCode import_file(const CommandLine& line) {
  const std::string& first = line.paths.front();
  const std::vector<std::string> rest(line.paths.begin() + 1, line.paths.end());
  if (first == "hang" && rest.size() == 1) {
    return import_hang_file(line, rest.front());
  }
  if (first != "hang" && first != "flight-recorder" && !rest.empty() && !std::filesystem::exists(first)) {
    throw UsageError(fmt::format(
        "cannot import '{}'; `import hang FILE` reads a file of the hang library, `import DIR` reads dumps",
        first));
  }
  const bool names_kind = first == "hang" || first == "flight-recorder";
  if (line.fixed || (names_kind && (first == "hang" || rest.empty()))) {
    throw UsageError(
        "`import hang FILE` reads one file of the hang library, `import DIR` reads the dumps of a job");
  }
  return import_recordings(line, names_kind ? rest : line.paths);
}

}  // namespace rollcall::cli
