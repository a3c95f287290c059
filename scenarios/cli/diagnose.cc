#include "scenarios/cli/cli.h"

#include "scenarios/cli/dump_files.h"
#include "sim/check/dump_judge.h"
#include "viz/json_diagnosis.h"
#include "viz/text_diagnosis.h"

namespace rollcall::cli {

// One broken file is a remark: the other ranks are still worth hearing.
ExitCode diagnose(const CommandLine& line) {
  const traces::ReadResult input = read_dumps(line.paths);
  if (input.job.ranks.empty()) {
    return no_dumps(input, line.paths);
  }
  const Diagnosis diagnosis = check::judge_dump(input.job);
  emit(line, line.format == Format::json ? viz::json_diagnosis(diagnosis, remarks_of(input.problems))
                                         : viz::text_diagnosis(diagnosis, {line.detail, wants_color(line)}));
  return diagnosis.verdict == "no_fault" ? ExitCode::as_expected : ExitCode::differs;
}

}  // namespace rollcall::cli
