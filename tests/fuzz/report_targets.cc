// Fuzz targets for files of rollcall and of profilers, and for the writers of reports.

#include <cstdio>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "scenarios/compare/result_file.h"
#include "scenarios/format/report_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "scenarios/run/search_results.h"
#include "sim/base/expects.h"
#include "tests/fuzz/made_up_report.h"
#include "tests/fuzz/targets.h"
#include "traces/formats/trace_reader.h"
#include "viz/ci/junit.h"
#include "viz/ci/sarif.h"
#include "viz/ci/test_json.h"
#include "viz/html/html_overview.h"
#include "viz/html/html_report.h"
#include "viz/html/html_trace.h"
#include "viz/json/json_report.h"
#include "viz/text/text_report.h"
#include "viz/text/timeline_chart.h"
#include "viz/traces/chrome_trace.h"
#include "viz/traces/kineto_trace.h"
#include "viz/traces/perfetto_trace.h"

namespace rollcall::fuzz {

namespace {

// A file without a disk, for readers that take paths.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : number_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    expects(number_ >= 0, "the system has memory for a file");
    expects(::write(number_, bytes.data(), bytes.size()) == static_cast<::ssize_t>(bytes.size()),
            "a file in memory is written");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(number_); }
  std::string path() const { return fmt::format("/proc/self/fd/{}", number_); }

 private:
  int number_;
};

// Throws, which is a finding, if the text is not JSON.
void expect_json(const std::string& text) {
  const auto read = nlohmann::json::parse(text);
  expects(!read.is_discarded(), "text that is read is not discarded");
}

template <typename Write>
std::string written(const Write& write) {
  std::ostringstream out;
  write(out);
  return out.str();
}

viz::TestRun run_of(const Report& report) {
  viz::TestOutcome outcome;
  outcome.status = viz::TestOutcome::Status::failed;
  outcome.file = report.scenario;
  outcome.title = report.replay;
  outcome.verdict = verdict_word(report.verdict);
  if (const Finding* finding = finding_of(report.verdict)) {
    outcome.kind = to_string(finding->kind);
    outcome.headline = finding->headline;
  }
  outcome.problems = report.unmet;
  outcome.text = viz::text_report(report, {});
  outcome.json = viz::json_report(report);
  viz::TestRun run;
  run.outcomes.push_back(outcome);
  run.selected = 1;
  return run;
}

void write_traces(const Report& report) {
  expect_json(written([&](std::ostream& out) { viz::chrome_trace(report, out); }));
  written([&](std::ostream& out) { viz::perfetto_trace(report, out); });
  const viz::KinetoTraces traces(report, {});
  for (const Rank rank : traces.ranks()) {
    expect_json(written([&](std::ostream& out) { traces.write(rank, out); }));
  }
  viz::timeline_chart(report, {}, {});
}

}  // namespace

void read_report(std::string_view bytes) {
  try {
    const scenario::SourceText source = scenario::check_source("fuzz.json", std::string(bytes));
    if (const std::optional<Report> report = scenario::read_report(source)) {
      viz::json_report(*report);
      viz::text_report(*report, {});
    }
  } catch (const scenario::InvalidScenario& refused) {
    // its error for such files
  }
}

// Chrome and Kineto traces, as `rollcall view` shows them.
void read_timeline(std::string_view bytes) {
  const MemoryFile file(bytes);
  try {
    const Report report = traces::read_trace({file.path()});
    written([&](std::ostream& out) { viz::html_trace(report, "fuzz", out); });
  } catch (const traces::InvalidTrace& refused) {
    // its error for such files
  }
}

// Results of `rollcall real --record`, and of `rollcall explore --format json` with its shards.
void read_results(std::string_view bytes) {
  const MemoryFile file(bytes);
  try {
    compare::read_result(file.path());
  } catch (const compare::InvalidResult& refused) {
    // its error for such files
  }
  try {
    scenario::merge_results(std::vector<scenario::NamedResult>{{"fuzz", std::string(bytes)}});
  } catch (const scenario::NotOneSearch& refused) {
    // its error for such files
  }
}

void write_report(std::string_view bytes) {
  const Report report = made_up_report(bytes);
  const std::string json = viz::json_report(report);
  expect_json(json);
  written([&](std::ostream& out) { viz::html_report(report, out); });
  const viz::TestRun run = run_of(report);
  expect_json(viz::sarif_report(run, "0"));
  expect_json(viz::test_json(run));
  written([&](std::ostream& out) { viz::junit_report(run, out); });
  written([&](std::ostream& out) { viz::html_overview(run, out); });
  write_traces(report);
}

}  // namespace rollcall::fuzz
