#include "scenarios/cli/cli.h"

#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "scenarios/cli/dump_files.h"
#include "scenarios/cli/judged_dumps.h"
#include "scenarios/cli/output_files.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/traces.h"
#include "scenarios/run/source_lines.h"
#include "sim/diagnose/dump_judge.h"
#include "traces/dumps/dump_report.h"
#include "viz/html/html_diagnosis.h"
#include "viz/json/json_diagnosis.h"
#include "viz/text/text_diagnosis.h"

namespace rollcall::cli {

namespace {

Diagnosis judged(const check::JobDump& job) {
  Diagnosis diagnosis = check::judge_dump(job);
  scenario::read_sources(diagnosis);
  return diagnosis;
}

traces::RecordedReport recorded(const std::vector<std::string>& paths, const check::JobDump& job,
                                const Diagnosis& diagnosis) {
  traces::RecordedReport recorded =
      traces::report_of(job, diagnosis, fmt::format("{}", fmt::join(paths, ", ")));
  recorded.report.sources = diagnosis.sources;
  return recorded;
}

void write_recorded_traces(const CommandLine& line, const traces::RecordedReport& recorded) {
  viz::TraceOptions options = trace_options(line.trace, recorded.report.world_size);
  for (const traces::RecordedWait& wait : recorded.waits) {
    const Span& cause = recorded.report.timeline.spans()[wait.cause];
    options.arrows.push_back({cause.start + 1, wait.cause, wait.waiting});
  }
  write_traces(line, recorded.report, options);
}

}  // namespace

JudgedDumps judge_dumps(const CommandLine& line, const std::vector<std::string>& paths) {
  const traces::ReadResult input = read_dumps(line, paths);
  if (input.job.ranks.empty()) {
    throw UsageError(fmt::format("no dumps, traces or logs of a job in {}", fmt::join(paths, ", ")));
  }
  Diagnosis diagnosis = judged(input.job);
  Report report = recorded(paths, input.job, diagnosis).report;
  return {std::move(diagnosis), remarks_of(input.problems), std::move(report)};
}

void write_page(const JudgedDumps& dumps, std::ostream& out) {
  viz::html_diagnosis(dumps.diagnosis, dumps.recorded, dumps.remarks, out);
}

// A broken file is only a remark: the other ranks are still worth judging.
ExitCode diagnose(const CommandLine& line) {
  const std::vector<ReportFile> files = report_files(line, page_kinds());
  require_files_of_their_own(line, files, line.paths);
  if (line.trace.chart) {
    throw UsageError(
        "diagnose cannot draw a timeline in the terminal; use --trace FILE or --report html=FILE");
  }
  traces::ReadResult input = read_dumps(line, line.paths);
  input.job.is_known_to_hang = line.hung;
  if (input.job.ranks.empty() && input.job.facts.empty()) {
    return no_dumps(input, line.paths);
  }
  const Diagnosis diagnosis = judged(input.job);
  const std::string json = viz::json_diagnosis(diagnosis, remarks_of(input.problems));
  emit(line, line.format == Format::json ? json : viz::text_diagnosis(diagnosis, text_style(line)));
  const auto page = [&](std::ostream& out) {
    viz::html_diagnosis(diagnosis, recorded(line.paths, input.job, diagnosis).report,
                        remarks_of(input.problems), out);
  };
  if (wants_timeline(line.trace)) {
    write_recorded_traces(line, recorded(line.paths, input.job, diagnosis));
  }
  write_reports(line, files, {{"html", page}, {"json", [&json](std::ostream& out) { out << json; }}});
  if (is_alarm(diagnosis)) {
    return ExitCode::differs;
  }
  return diagnosis.may_be_healthy ? ExitCode::undecided : ExitCode::as_expected;
}

}  // namespace rollcall::cli
