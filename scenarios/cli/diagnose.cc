#include "scenarios/cli/cli.h"

#include <filesystem>

#include <fmt/format.h>

#include "sim/check/dump_judge.h"
#include "traces/flight_recorder.h"
#include "viz/json_diagnosis.h"
#include "viz/text_diagnosis.h"

namespace rollcall::cli {

namespace {

constexpr std::size_t most_problems = 20;

traces::ReadResult read(const CommandLine& line) try {
  return traces::read_flight_recorder(line.paths);
} catch (const std::filesystem::filesystem_error& error) {
  throw UsageError(fmt::format("cannot list '{}': {}", error.path1().string(), error.code().message()));
}

viz::Remarks remarks_of(const std::vector<traces::FileProblem>& problems) {
  viz::Remarks remarks;
  for (const traces::FileProblem& problem : problems) {
    remarks.push_back(fmt::format("{}: {}", problem.file, problem.message));
  }
  return remarks;
}

void show(const viz::Remarks& remarks) {
  for (std::size_t i = 0; i < remarks.size() && i < most_problems; ++i) {
    remark("rollcall: " + viz::printable(remarks[i]));
  }
  if (remarks.size() > most_problems) {
    remark(fmt::format("rollcall: {} more files were not used", remarks.size() - most_problems));
  }
}

}  // namespace

// One broken file is a remark: the other ranks are still worth hearing.
ExitCode diagnose(const CommandLine& line) {
  const traces::ReadResult input = read(line);
  const viz::Remarks remarks = remarks_of(input.problems);
  show(remarks);
  if (input.job.ranks.empty()) {
    remark(fmt::format("rollcall: {}: no Flight Recorder dumps in {}",
                       remarks.empty() ? "nothing selected" : "error", fmt::join(line.paths, ", ")));
    return remarks.empty() ? ExitCode::nothing_selected : ExitCode::invalid;
  }
  const Diagnosis diagnosis = check::judge_dump(input.job);
  emit(line, line.format == Format::json ? viz::json_diagnosis(diagnosis, remarks)
                                         : viz::text_diagnosis(diagnosis, {line.detail, wants_color(line)}));
  return diagnosis.verdict == "no_fault" ? ExitCode::as_expected : ExitCode::differs;
}

}  // namespace rollcall::cli
