#include "scenarios/cli/cli.h"

#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "scenarios/cli/dump_files.h"
#include "scenarios/cli/judged_dumps.h"
#include "scenarios/cli/page_files.h"
#include "sim/check/dump_judge.h"
#include "traces/dump_report.h"
#include "viz/html_diagnosis.h"
#include "viz/json_diagnosis.h"
#include "viz/text_diagnosis.h"

namespace rollcall::cli {

namespace {

// The records as a page shows them.
Report recorded(const std::vector<std::string>& paths, const check::JobDump& job,
                const Diagnosis& diagnosis) {
  return traces::report_of(job, diagnosis, fmt::format("{}", fmt::join(paths, ", ")));
}

}  // namespace

JudgedDumps judge_dumps(const std::vector<std::string>& paths) {
  const traces::ReadResult input = read_dumps(paths);
  if (input.job.ranks.empty()) {
    throw UsageError(fmt::format("no Flight Recorder dumps in {}", fmt::join(paths, ", ")));
  }
  Diagnosis diagnosis = check::judge_dump(input.job);
  Report report = recorded(paths, input.job, diagnosis);
  return {std::move(diagnosis), remarks_of(input.problems), std::move(report)};
}

void write_page(const JudgedDumps& dumps, std::ostream& out) {
  viz::html_diagnosis(dumps.diagnosis, dumps.recorded, dumps.remarks, out);
}

// One broken file is a remark: the other ranks are still worth hearing.
ExitCode diagnose(const CommandLine& line) {
  const std::vector<PageFile> files = page_files(line, line.paths);
  const traces::ReadResult input = read_dumps(line.paths);
  if (input.job.ranks.empty()) {
    return no_dumps(input, line.paths);
  }
  const Diagnosis diagnosis = check::judge_dump(input.job);
  const std::string json = viz::json_diagnosis(diagnosis, remarks_of(input.problems));
  emit(line,
       line.format == Format::json ? json : viz::text_diagnosis(diagnosis, {line.detail, wants_color(line)}));
  const auto page = [&](std::ostream& out) {
    viz::html_diagnosis(diagnosis, recorded(line.paths, input.job, diagnosis), remarks_of(input.problems),
                        out);
  };
  write_page_files(line, files, {{"html", page}, {"json", [&json](std::ostream& out) { out << json; }}});
  return diagnosis.verdict == "no_fault" ? ExitCode::as_expected : ExitCode::differs;
}

}  // namespace rollcall::cli
