#include "scenarios/cli/report_writers.h"

#include <iterator>
#include <ostream>

#include "scenarios/format/version.h"
#include "viz/ci/github.h"
#include "viz/ci/junit.h"
#include "viz/ci/sarif.h"
#include "viz/ci/test_json.h"
#include "viz/html/html_overview.h"
#include "viz/html/html_report.h"
#include "viz/json/json_report.h"

namespace rollcall::cli {

namespace {

// The kinds that are the same for one run and for several.
ReportWriters ci_writers(const viz::TestRun& run) {
  return {{"junit", [&run](std::ostream& out) { viz::junit_report(run, out); }},
          {"sarif", [&run](std::ostream& out) { out << viz::sarif_report(run, std::string(version())); }},
          {"github", [&run](std::ostream& out) { out << viz::github_annotations(run); }}};
}

ReportWriters joined(ReportWriters first, ReportWriters second) {
  first.insert(first.end(), std::make_move_iterator(second.begin()), std::make_move_iterator(second.end()));
  return first;
}

}  // namespace

ReportWriters writers_of(const Report& report) {
  return {{"html", [&report](std::ostream& out) { viz::html_report(report, out); }},
          {"json", [&report](std::ostream& out) { out << viz::json_report(report); }}};
}

ReportWriters writers_of(const Report& report, const viz::TestRun& run) {
  return joined(writers_of(report), ci_writers(run));
}

ReportWriters writers_of(const viz::TestRun& run) {
  return joined({{"html", [&run](std::ostream& out) { viz::html_overview(run, out); }},
                 {"json", [&run](std::ostream& out) { out << viz::test_json(run); }}},
                ci_writers(run));
}

}  // namespace rollcall::cli
